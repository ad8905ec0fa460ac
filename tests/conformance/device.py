"""What the scripts that run whole models on a device share. A model is given as FOLDER[:dim=value,..]."""
import pathlib


class Model:
    """A folder with model.onnx and data sets, and the dims to fix."""

    def __init__(self, argument):
        name, _, dims = argument.partition(":")
        self.folder = pathlib.Path(name)
        self.name = self.folder.name
        self.dims = [part for dim in (dims.split(",") if dims else []) for part in ("--dim", dim)]

    def data_set(self):
        return next(self.folder / name for name in ("set0", "test_data_set_0") if (self.folder / name).exists())


def present(arguments):
    """The models that are there; the others are named as skipped."""
    for model in map(Model, arguments):
        if (model.folder / "model.onnx").exists():
            yield model
        else:
            print(f"SKIPPED {model.name}: {model.folder} is not there")
