"""scikit-learn's pipelines and gradient-boosted trees."""

from catalog import row


def learnt(path, regression=False, proba=True, **arguments):
    """An estimator by its module and class."""

    def make():
        import importlib
        import classic

        module, _, kind = path.rpartition(".")
        return classic.case(getattr(importlib.import_module(module), kind)(**arguments), regression=regression, proba=proba)

    return make


def pipeline(*paths, regression=False):
    def make():
        import importlib
        import classic
        import sklearn.pipeline

        steps = []
        for path, arguments in paths:
            module, _, kind = path.rpartition(".")
            steps.append(getattr(importlib.import_module("sklearn." + module), kind)(**arguments))
        return classic.case(sklearn.pipeline.make_pipeline(*steps), regression=regression)

    return make


def stacking():
    import classic
    from sklearn.ensemble import StackingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    parts = [("tree", DecisionTreeClassifier(max_depth=4)), ("line", LogisticRegression())]
    return classic.case(StackingClassifier(parts, final_estimator=LogisticRegression(), cv=3))


SCALE, LOGISTIC = ("preprocessing.StandardScaler", {}), ("linear_model.LogisticRegression", {})
row("skl-logistic", "sklearn", pipeline(SCALE, LOGISTIC), "skl2onnx skl2onnx-zipmap")
row("skl-poly-logistic", "sklearn", pipeline(("preprocessing.PolynomialFeatures", {"degree": 2}), SCALE, LOGISTIC), "skl2onnx")
row(
    "skl-pca-mlp",
    "sklearn",
    pipeline(SCALE, ("decomposition.PCA", {"n_components": 4}), ("neural_network.MLPClassifier", {"max_iter": 40})),
    "skl2onnx skl2onnx-zipmap",
)
row(
    "skl-mlp-regressor",
    "sklearn",
    pipeline(("preprocessing.MinMaxScaler", {}), ("neural_network.MLPRegressor", {"max_iter": 40}), regression=True),
    "skl2onnx",
)
row("skl-linear", "sklearn", learnt("sklearn.linear_model.LinearRegression", True), "skl2onnx")
row("skl-svc", "sklearn", learnt("sklearn.svm.SVC", probability=True), "skl2onnx")
row("skl-svr", "sklearn", learnt("sklearn.svm.SVR", True), "skl2onnx")
row("skl-knn", "sklearn", learnt("sklearn.neighbors.KNeighborsClassifier"), "skl2onnx")
row("skl-bayes", "sklearn", learnt("sklearn.naive_bayes.GaussianNB"), "skl2onnx")
row("skl-kmeans", "sklearn", learnt("sklearn.cluster.KMeans", proba=False, n_clusters=3, n_init=2), "skl2onnx")
row("skl-forest", "sklearn", learnt("sklearn.ensemble.RandomForestClassifier", n_estimators=20, max_depth=6), "skl2onnx skl2onnx-zipmap")
row("skl-forest-regressor", "sklearn", learnt("sklearn.ensemble.RandomForestRegressor", True, n_estimators=20, max_depth=6), "skl2onnx")
row("skl-hist-boosting", "sklearn", learnt("sklearn.ensemble.HistGradientBoostingClassifier", max_iter=20), "skl2onnx")
row("skl-boosting", "sklearn", learnt("sklearn.ensemble.GradientBoostingRegressor", True, n_estimators=30), "skl2onnx")
row("skl-gaussian-process", "sklearn", learnt("sklearn.gaussian_process.GaussianProcessRegressor", True), "skl2onnx")
row("skl-tree", "sklearn", learnt("sklearn.tree.DecisionTreeClassifier", max_depth=5), "skl2onnx")
row("skl-stacking", "sklearn", stacking, "skl2onnx")
row("skl-adaboost", "sklearn", learnt("sklearn.ensemble.AdaBoostClassifier", n_estimators=10), "skl2onnx")
row("skl-kbins", "sklearn", pipeline(("preprocessing.KBinsDiscretizer", {"n_bins": 4, "encode": "onehot-dense"}), LOGISTIC), "skl2onnx")
for depth in (4, 8):
    row(
        f"lightgbm-{depth}",
        "boosted",
        learnt("lightgbm.LGBMClassifier", n_estimators=20, max_depth=depth, verbose=-1),
        "onnxmltools-lightgbm",
    )
    row(
        f"lightgbm-regressor-{depth}",
        "boosted",
        learnt("lightgbm.LGBMRegressor", True, n_estimators=20, max_depth=depth, verbose=-1),
        "onnxmltools-lightgbm",
    )
    row(f"xgboost-{depth}", "boosted", learnt("xgboost.XGBClassifier", n_estimators=20, max_depth=depth), "onnxmltools-xgboost")
    row(
        f"xgboost-regressor-{depth}",
        "boosted",
        learnt("xgboost.XGBRegressor", True, n_estimators=20, max_depth=depth),
        "onnxmltools-xgboost",
    )
