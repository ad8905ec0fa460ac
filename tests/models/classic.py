"""Models of scikit-learn and of gradient-boosted trees, with what exports them. A model's own prediction is the reference."""

import numpy as np


class Fitted:
    """An estimator fitted to random points, as a Case's model."""

    def __init__(self, estimator, regression=False, features=8, proba=True):
        random = np.random.default_rng(0)
        points = random.normal(size=(300, features)).astype(np.float32)
        weights = random.normal(size=features)
        values = points @ weights + 0.3 * points[:, 0] * points[:, 1]
        target = values.astype(np.float32) if regression else np.digitize(values, [-1.5, 1.5])
        self.estimator, self.features, self.regression, self.proba = estimator.fit(points, target), features, regression, proba

    def reference(self, inputs):
        points = inputs["X"].astype(np.float32)
        if hasattr(self.estimator, "transform") and not hasattr(self.estimator, "predict"):
            return [np.asarray(self.estimator.transform(points), np.float32)]
        found = np.asarray(self.estimator.predict(points))
        if self.regression:
            return [found.astype(np.float32).reshape(len(points), -1)]
        scores = [np.asarray(self.estimator.predict_proba(points), np.float32)] if self.proba else []
        return [found.astype(np.int64), *scores]

    def named_buffers(self):
        return []


def case(estimator, features=8, **arguments):
    from catalog import Case

    random = np.random.default_rng(1)
    sets = [{"X": random.normal(size=(rows, features)).astype(np.float32)} for rows in (5, 12)]
    return Case(
        Fitted(estimator, features=features, **arguments),
        sets,
        {"X": {0: "rows"}},
        scores={} if arguments.get("regression") else {"0": "1"},
    )


def write(model, folder):
    from exporters import onnx_answer

    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return onnx_answer(folder / "model.onnx")


def with_skl2onnx(zipmap):
    def export(case, folder, options):
        import skl2onnx
        from skl2onnx.common.data_types import FloatTensorType

        estimator = case.model.estimator
        settings = {} if zipmap or case.model.regression or not hasattr(estimator, "classes_") else {id(estimator): {"zipmap": False}}
        kind = [("X", FloatTensorType([None, case.model.features]))]
        return write(skl2onnx.convert_sklearn(estimator, initial_types=kind, options=settings), folder)

    return export


def boosted(name):
    def export(case, folder, options):
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType

        convert = getattr(onnxmltools, f"convert_{name}")
        more = {"zipmap": False} if name == "lightgbm" and not case.model.regression else {}
        return write(
            convert(case.model.estimator, initial_types=[("X", FloatTensorType([None, case.model.features]))], target_opset=15, **more),
            folder,
        )

    return export


EXPORTERS = {
    "skl2onnx": with_skl2onnx(False),
    "skl2onnx-zipmap": with_skl2onnx(True),
    "onnxmltools-lightgbm": boosted("lightgbm"),
    "onnxmltools-xgboost": boosted("xgboost"),
}
