"""`dmxc FOLDER`: which file of it is the model, and what configurations beside it say of a decoder: folders_test.py BIN [unittest arguments]."""
import json
import pathlib
import re

import subprocess
import tempfile

import onnx
import tiny_decoder
from generate_case import BIN, Case, answers, compiled, main
from tiny_decoder import NAMES

LLAMA = {"architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 32, "vocab_size": 97}
PROMPT = ("--prompt", "5 6 7")


class Folders(Case):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="dmxc-folders-")
        self.addCleanup(self.place.cleanup)
        self.folder = pathlib.Path(self.place.name) / "llm"
        self.folder.mkdir()

    def put(self, name, content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, dict):
            path.write_text(json.dumps(content))
        else:
            path.write_bytes(content.read_bytes())
        return path

    def decoder(self, **options):
        return tiny_decoder.write(pathlib.Path(self.place.name) / "m.onnx", **options)

    def dmxc(self, *arguments, code=0):
        done = subprocess.run([BIN / "dmxc", *arguments], capture_output=True, text=True, cwd=self.place.name, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def compile(self, *arguments):
        self.dmxc(self.folder, "-q", "-t", "cpu:x86-64-v2", "-O0", "-o", "llm.bundle", *arguments)
        return pathlib.Path(self.place.name) / "llm.bundle"

    def said(self, bundle):
        """What the manifest has under `generate.`."""
        text = subprocess.run([BIN / "dmx-inspect", bundle], capture_output=True, text=True, check=True).stdout
        return dict(re.findall(r"^metadata generate\.(\S+) +(.*)$", text, re.M))

    def test_genai(self):
        self.put("model.onnx", self.decoder(names="optimum"))
        whole = answers(compiled(), *PROMPT, "--max-tokens", 40)[0]
        config = tiny_decoder.genai_config(tiny_decoder.Sizes(), NAMES["optimum"], 24, [96, whole[6]])
        config["model"]["vocab_size"] = 90
        self.put("genai_config.json", config)
        bundle = self.compile()
        said = self.said(bundle)
        self.assertEqual({key: said[key] for key in ("version", "ids", "mask", "positions", "logits", "eos", "bos", "context", "vocabulary")}, {
            "version": "1", "ids": "input_ids", "mask": "attention_mask", "positions": "position_ids", "logits": "logits", "eos": f"96 {whole[6]}", "bos": "1",
            "context": "24", "vocabulary": "90"})
        self.assertEqual(sorted(said["caches"].split("\\n")), [f"past_key_values.{i}.{part}=present.{i}.{part}" for i in (0, 1) for part in ("key", "value")])
        self.assertEqual(answers(bundle, *PROMPT)[0], whole[:whole.index(whole[6])])
        self.assertEqual(answers(bundle, *PROMPT, "--ignore-stop")[0], whole[:22])  # 24 in all, and the last is not computed
        self.assertEqual(answers(bundle, *PROMPT, "--stop", whole[4])[0], whole[:whole.index(whole[4])])
        self.refused(2, ["the token id 90 is outside"], bundle, "--prompt", "90")
        self.refused(2, ["takes 24 in all"], bundle, "--prompt", "1 " * 25)

    def test_caches_are_states(self):
        """By themselves, unless something keeps them from it, which a note says, or the user."""
        self.put("model.onnx", self.decoder(names="optimum"))
        self.put("config.json", LLAMA)
        whole = answers(compiled(), *PROMPT, "--max-tokens", 20)
        compile = (self.folder, "-t", "cpu:x86-64-v2", "-O0", "-o", "llm.bundle")
        bundle = pathlib.Path(self.place.name) / "llm.bundle"
        for flags, states in (((), "room for 32 rows of 'past'"), (("--dim", "past=0..9"), "room for 9 rows of 'past'"), (("--state", "none"), ""),
                              (("--dim", "past=4"), ""), (("-t", "corsair"), "")):
            said = self.dmxc(*compile, *flags)
            self.assertEqual(re.findall(r"states: 4 with (room for \d+ rows of 'past')", said), [states] if states else [], said)
            if flags[:1] != ("-t",) and "past=4" not in flags:
                given = answers(bundle, *PROMPT, "--ignore-stop", "--max-tokens", 7 if "past=0..9" in flags else 20)
                self.assertEqual(given, [whole[0][:len(given[0])]])
        self.put("config.json", {"architectures": LLAMA["architectures"]})
        self.assertRegex(self.dmxc(*compile), "note: caches stay .*'past_key_values.0.key': the state has 'past' rows, .*--dim past=0..N")
        self.put("config.json", LLAMA)
        self.assertIn("none stands alone", self.dmxc(*compile, "--state", "none", "--state", "a=b", code=2))
        model = onnx.load(self.folder / "model.onnx")
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_param = "batch_size"
        onnx.save(model, self.folder / "model.onnx")
        said = self.dmxc(*compile)
        self.assertIn("note: the bundle is for one sequence ('batch_size' is 1)", said)
        self.assertRegex(said, "states: 4 with room for 32 rows .*; inputs that follow their length: 'attention_mask', 'position_ids'\n")
        self.assertEqual(answers(bundle, *PROMPT, "--ignore-stop", "--max-tokens", 20), whole)
        said = self.dmxc(*compile, "--dim", "batch_size=2")
        self.assertIn("states: 4 with room for 32 rows", said)
        self.assertNotIn("one sequence", said)
        self.refused(1, ["takes 2 sequences at once"], bundle, *PROMPT)
        said = self.dmxc(*compile, "--state", "none")
        self.assertNotIn("one sequence", said)
        self.assertEqual(answers(bundle, *PROMPT, "--ignore-stop", "--max-tokens", 20), whole)

    def test_names_that_only_the_configuration_knows(self):
        """Of genai's kind, for a decoder whose names no exporter gives."""
        self.put("model.onnx", self.decoder(names="strange", drop=("remembered_key_1", "remembered_value_1")))
        config = tiny_decoder.genai_config(tiny_decoder.Sizes(), NAMES["strange"])
        self.put("genai_config.json", config)
        said = self.dmxc(self.folder, "-o", "x.bundle")
        self.assertIn("goes without what it says", said)
        self.assertIn("'remembered_key_1', which is not there", said)
        self.put("model.onnx", self.decoder(names="strange"))
        bundle = self.compile()
        self.assertEqual(answers(bundle, *PROMPT, "--max-tokens", 9, "--ignore-stop")[0], answers(compiled(), *PROMPT, "--max-tokens", 9)[0])

    def test_transformers(self):
        self.put("onnx/model.onnx", self.decoder(names="optimum"))
        self.put("config.json", LLAMA)
        whole = answers(compiled(), *PROMPT, "--max-tokens", 40)[0]
        self.put("generation_config.json", {"eos_token_id": [2, whole[4]]})
        bundle = self.compile()
        self.assertEqual((self.said(bundle)["eos"], self.said(bundle)["context"]), (f"2 {whole[4]}", "32"))
        self.assertEqual(answers(bundle, *PROMPT)[0], whole[:whole.index(whole[4])])
        self.assertRegex(subprocess.run([BIN / "dmx-inspect", bundle], capture_output=True, text=True).stdout, r"\n +past +0 +32\n")
        wider = self.compile("--dim", "past=0..99")
        self.assertRegex(subprocess.run([BIN / "dmx-inspect", wider], capture_output=True, text=True).stdout, r"\n +past +0 +99\n")

    def test_a_file_that_says_it_itself(self):
        whole = answers(compiled(), *PROMPT, "--max-tokens", 40)[0]
        file, place = self.decoder(names="optimum"), pathlib.Path(self.place.name)
        for number, (version, eos) in enumerate((("1", str(whole[4])), ("2", "1"), ("1", "x"))):
            model = onnx.load(file)
            onnx.helper.set_model_props(model, {"generate.version": version, "generate.eos": eos})
            onnx.save(model, place / "own.onnx")
            self.dmxc("own.onnx", "-q", "-t", "cpu:x86-64-v2", "-O0", "-o", f"{number}.bundle")
        self.assertEqual(answers(place / "0.bundle", *PROMPT)[0], whole[:whole.index(whole[4])])
        self.refused(1, ["is of version 2, and this dmx-generate knows 1"], place / "1.bundle", *PROMPT)
        self.refused(1, ["the bundle's generate.eos: 'x' is no token id"], place / "2.bundle", *PROMPT)

    def test_by_way_of_a_text(self):
        self.put("model.onnx", self.decoder(names="optimum"))
        self.put("config.json", LLAMA)
        self.dmxc(self.folder, "--emit", "frontend", "-o", "text.mlir")
        self.dmxc("text.mlir", "--from", "frontend", "-q", "-t", "cpu:x86-64-v2", "-O0", "-o", "from.bundle")
        self.assertEqual(self.said(pathlib.Path(self.place.name) / "from.bundle"), self.said(self.compile()))

    def test_other_models_are_as_before(self):
        digits = pathlib.Path(__file__).resolve().parents[2] / "tools/digits/digits.onnx"
        self.put("model.onnx", digits)
        self.put("config.json", {"architectures": ["BertModel"], "max_position_embeddings": 512, "vocab_size": 100})
        self.dmxc(digits, "-q", "-o", "alone.bundle")
        self.dmxc(self.folder, "-q", "-MD")  # the folder's name is the bundle's
        place = pathlib.Path(self.place.name)
        self.assertEqual((place / "llm.bundle").read_bytes(), (place / "alone.bundle").read_bytes())
        self.assertIn("config.json", (place / "llm.bundle.d").read_text())
        decoder = self.put("model.onnx", self.decoder(names="optimum"))
        self.put("config.json", LLAMA)
        self.dmxc(decoder, "-q", "-t", "cpu:x86-64-v2", "-O0", "-o", "file.bundle")
        self.assertEqual(self.said(place / "file.bundle"), {}, "of a file given by itself nothing is read beside it")

    def test_refusals(self):
        self.assertIn("has no model (.onnx, .pt2)", self.dmxc(self.folder, code=3))
        decoder = self.decoder(names="optimum")
        for name in ("a.onnx", "b.onnx"):
            self.put(name, decoder)
        self.assertRegex(self.dmxc(self.folder, code=2), r"has several models: '\S*a.onnx', '\S*b.onnx'; give one of them")
        self.put("model.onnx", decoder)
        (self.folder / "config.json").write_text("{")
        self.assertIn("config.json' is no JSON object", self.dmxc(self.folder, code=1))
        (self.folder / "config.json").unlink()
        self.put("genai_config.json", {"model": {"decoder": {"filename": "../m.onnx"}}})
        self.assertIn("outside of its folder, '../m.onnx'", self.dmxc(self.folder, code=1))
        self.put("genai_config.json", {"model": {"decoder": {"filename": "none.onnx"}}})
        self.assertIn("none.onnx': No such file", self.dmxc(self.folder, code=3))

    def test_numbers_that_are_none(self):
        """A configuration of any types compiles; what is not as it should be says nothing."""
        self.put("model.onnx", self.decoder(names="optimum"))
        self.put("config.json", {"architectures": ["XForCausalLM", 3], "eos_token_id": "x", "bos_token_id": None, "max_position_embeddings": -4, "vocab_size": 1.5})
        said = self.said(self.compile())
        self.assertEqual(set(said), {"version", "ids", "mask", "positions", "logits", "caches"})
        self.put("config.json", {"architectures": "XForCausalLM", "text_config": []})
        self.assertEqual(set(self.said(self.compile())), set(said))


if __name__ == "__main__":
    main()
