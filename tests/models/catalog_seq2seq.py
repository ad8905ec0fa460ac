"""Encoders with decoders: T5, BART, Marian, and what reads audio into text."""

from catalog import Case, mask, normal, row, tokens
from huggingface import build, outputs

ALL = "pt2-dyn dynamo18 script17"


def pair(kind, config, vocabulary=1000, attention="sdpa", **sizes):
    """Tokens to an encoder and to a decoder, both of open lengths."""

    def make():
        model = build(kind, config, attention, vocab_size=vocabulary, **sizes)
        sets = [
            {
                "input_ids": tokens(batch, source, vocabulary),
                "attention_mask": mask(batch, source),
                "decoder_input_ids": tokens(batch, target, vocabulary, 6),
            }
            for batch, source, target in ((2, 16, 7), (3, 21, 10))
        ]
        dims = {
            "input_ids": {0: "batch", 1: "source"},
            "attention_mask": {0: "batch", 1: "source"},
            "decoder_input_ids": {0: "batch", 1: "target"},
        }
        return Case(model, sets, dims, outputs("logits", use_cache=False), config=model.config)

    return make


def whisper(layers, width, heads, vocabulary):
    def make():
        model = build(
            "WhisperForConditionalGeneration",
            "WhisperConfig",
            d_model=width,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=4 * width,
            decoder_ffn_dim=4 * width,
            vocab_size=vocabulary,
            pad_token_id=1,
            bos_token_id=1,
            eos_token_id=1,
            decoder_start_token_id=2,
        )
        sets = [
            {"input_features": normal(batch, 80, 3000), "decoder_input_ids": tokens(batch, length, vocabulary)}
            for batch, length in ((2, 6), (3, 9))
        ]
        dims = {"input_features": {0: "batch"}, "decoder_input_ids": {0: "batch", 1: "target"}}
        return Case(model, sets, dims, outputs("logits", use_cache=False), config=model.config)

    return make


def waveform(kind, config, names=("logits",), lengths=((2, 8000), (3, 9600)), **sizes):
    def make():
        model = build(kind, config, **sizes)
        sets = [{"input_values": normal(batch, length)} for batch, length in lengths]
        return Case(model, sets, {"input_values": {0: "batch", 1: "samples"}}, outputs(*names), config=model.config)

    return make


row(
    "t5-small-2",
    "t5",
    pair(
        "T5ForConditionalGeneration",
        "T5Config",
        d_model=512,
        d_kv=64,
        num_heads=8,
        d_ff=2048,
        num_layers=2,
        num_decoder_layers=2,
        decoder_start_token_id=0,
    ),
    ALL + " pt2 pt2-dyn@2.6 pt2-dyn@2.9 q-dyn pt2-core script14 fp16",
)
row(
    "t5-small",
    "t5",
    pair(
        "T5ForConditionalGeneration",
        "T5Config",
        vocabulary=32128,
        d_model=512,
        d_kv=64,
        num_heads=8,
        d_ff=2048,
        num_layers=6,
        decoder_start_token_id=0,
    ),
    "pt2-dyn dynamo18",
    True,
)
row(
    "flan-t5-2",
    "t5",
    pair(
        "T5ForConditionalGeneration",
        "T5Config",
        d_model=512,
        d_kv=64,
        num_heads=6,
        d_ff=1024,
        num_layers=2,
        num_decoder_layers=2,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        decoder_start_token_id=0,
    ),
    "pt2-dyn dynamo18 script17",
)
row(
    "bart-base-2",
    "bart",
    pair(
        "BartForConditionalGeneration",
        "BartConfig",
        d_model=768,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
    ),
    ALL + " pt2-dyn@2.6 q-dyn ortopt-bart q4-32",
)
row(
    "marian-2",
    "marian",
    pair(
        "MarianMTModel",
        "MarianConfig",
        d_model=512,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        pad_token_id=0,
        decoder_start_token_id=0,
        activation_function="swish",
    ),
    ALL + " pt2-dyn@2.9",
)
row(
    "pegasus-2",
    "bart",
    pair(
        "PegasusForConditionalGeneration",
        "PegasusConfig",
        d_model=512,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
    ),
    "pt2-dyn dynamo18",
)
row("whisper-tiny-2", "whisper", whisper(2, 384, 6, 1000), ALL + " pt2-dyn@2.9 q-dyn script14 ortopt-bart")
row("whisper-tiny", "whisper", whisper(4, 384, 6, 51865), "pt2-dyn dynamo18", True)
row(
    "wav2vec2-2",
    "wav2vec2",
    waveform("Wav2Vec2ForCTC", "Wav2Vec2Config", num_hidden_layers=2, vocab_size=32),
    ALL + " pt2-dyn@2.6 pt2-core q-dyn",
)
row("hubert-2", "wav2vec2", waveform("HubertModel", "HubertConfig", ("last_hidden_state",), num_hidden_layers=2), "pt2-dyn script17")
row("wavlm-2", "wav2vec2", waveform("WavLMModel", "WavLMConfig", ("last_hidden_state",), num_hidden_layers=2), "pt2-dyn script17")
row("sew-2", "wav2vec2", waveform("SEWModel", "SEWConfig", ("last_hidden_state",), num_hidden_layers=2), "pt2-dyn dynamo18")
