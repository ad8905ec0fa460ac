"""Images with text, diffusion, sound, time series."""

from catalog import Case, enliven, images, mask, normal, row, tokens
from huggingface import build, outputs

ALL = "pt2-dyn dynamo18 script17"


def clip(kind, config, tower, size, **towers):
    def make():
        model = build(kind, config, **towers)
        sets = [
            {"input_ids": tokens(texts, length, 900), "pixel_values": images(pictures, size)}
            for texts, pictures, length in ((2, 3, tower), (3, 2, tower))
        ]
        dims = {"input_ids": {0: "texts"}, "pixel_values": {0: "images"}}
        return Case(model, sets, dims, outputs("logits_per_image", "text_embeds", "image_embeds"), config=model.config)

    return make


def pixels(kind, config, size=224, names=("logits",), batches=(2, 3), **sizes):
    def make():
        model = build(kind, config, **sizes)
        return Case(
            model,
            [{"pixel_values": images(batch, size)} for batch in batches],
            {"pixel_values": {0: "batch"}},
            outputs(*names),
            config=model.config,
        )

    return make


def diffusers(kind, inputs, dims, call=None, **sizes):
    """A model of diffusers; inputs(set number) gives its tensors by name."""

    def make():
        import diffusers as library
        import torch

        torch.manual_seed(0)
        model = enliven(getattr(library, kind)(**sizes)).eval()
        return Case(model, [inputs(0), inputs(1)], dims, call or (lambda model, **given: model(**given, return_dict=False)))

    return make


def latents(channels, size, width=0, length=7):
    def inputs(number):
        import torch

        batch, extent = number + 2, size + 8 * number
        given = {"sample": normal(batch, channels, extent, extent), "timestep": torch.full((batch,), 17 + number)}
        if width:
            given["encoder_hidden_states"] = normal(batch, length, width)
        return given

    return inputs


def series(kind, config, length, channels, names, **sizes):
    def make():
        model = build(kind, config, **sizes)
        sets = [{"past_values": normal(batch, length, channels)} for batch in (2, 3)]
        return Case(model, sets, {"past_values": {0: "batch"}}, outputs(*names))

    return make


def encodec():
    model = build("EncodecModel", "EncodecConfig", num_filters=32, num_lstm_layers=2)

    def call(model, audio):
        hidden = model.encoder(audio)
        return [hidden, model.decoder(hidden)]

    return Case(model, [{"audio": normal(2, 1, 4800)}, {"audio": normal(3, 1, 6400)}], {"audio": {0: "batch", 2: "samples"}}, call)


def vae(_number=0):
    return {"sample": images(2 + _number, 32 + 16 * _number)}


SPATIAL = {0: "batch", 2: "height", 3: "width"}
TEXT = {
    "hidden_size": 512,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
    "eos_token_id": 999,
    "bos_token_id": 998,
    "pad_token_id": 1,
}
VISION = {
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "num_hidden_layers": 2,
    "image_size": 224,
    "patch_size": 32,
}
row(
    "clip-b32-2",
    "clip",
    clip("CLIPModel", "CLIPConfig", 77, 224, text_config=TEXT, vision_config=VISION),
    ALL + " pt2-dyn@2.6 pt2-dyn@2.9 q-dyn ortopt-ext fp16",
)
row(
    "siglip-b16-2",
    "siglip",
    clip(
        "SiglipModel",
        "SiglipConfig",
        64,
        224,
        text_config={**TEXT, "hidden_size": 768, "num_attention_heads": 12, "projection_size": 768},
        vision_config={**VISION, "patch_size": 16},
    ),
    ALL + " pt2-dyn@2.9 q-dyn pt2-core script14 ortopt-ext",
)
row("vit-hf-2", "vit", pixels("ViTForImageClassification", "ViTConfig", num_hidden_layers=2), ALL + " ortopt-vit optimum-features")
row(
    "dinov2-small-2",
    "vit",
    pixels(
        "Dinov2Model",
        "Dinov2Config",
        names=("last_hidden_state",),
        hidden_size=384,
        num_attention_heads=6,
        num_hidden_layers=2,
        image_size=518,
        patch_size=14,
    ),
    ALL,
)
row(
    "segformer-b0",
    "segmentation",
    pixels("SegformerForSemanticSegmentation", "SegformerConfig", 256, num_labels=19),
    "pt2-dyn dynamo18 script17",
    True,
)
row(
    "dpt-tiny",
    "segmentation",
    pixels(
        "DPTForDepthEstimation",
        "DPTConfig",
        384,
        ("predicted_depth",),
        hidden_size=192,
        num_hidden_layers=4,
        num_attention_heads=3,
        intermediate_size=768,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[48, 96, 192, 192],
        fusion_hidden_size=64,
    ),
    "pt2 dynamo18",
)
row(
    "swin2sr-2",
    "vit",
    pixels(
        "Swin2SRForImageSuperResolution",
        "Swin2SRConfig",
        64,
        ("reconstruction",),
        embed_dim=60,
        depths=[2, 2],
        num_heads=[6, 6],
        image_size=64,
    ),
    "pt2 dynamo18",
)
row(
    "unet2d",
    "unet2d",
    diffusers(
        "UNet2DModel",
        latents(3, 32),
        {"sample": SPATIAL, "timestep": {0: "batch"}},
        block_out_channels=(32, 64, 64),
        layers_per_block=1,
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    ),
    ALL + " pt2 pt2-core",
)
row(
    "unet2d-condition",
    "unet2d",
    diffusers(
        "UNet2DConditionModel",
        latents(4, 16, 768),
        {"sample": SPATIAL, "timestep": {0: "batch"}, "encoder_hidden_states": {0: "batch"}},
        block_out_channels=(320, 640),
        layers_per_block=1,
        cross_attention_dim=768,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    ),
    ALL + " fp16 ortopt-ext",
)
row(
    "vae",
    "vae",
    diffusers(
        "AutoencoderKL",
        vae,
        {"sample": SPATIAL},
        block_out_channels=(64, 128),
        layers_per_block=1,
        latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    ),
    ALL + " pt2 pt2-core script14 pt2-strict ortopt-ext fp16",
)
row(
    "vq-vae",
    "vae",
    diffusers(
        "VQModel",
        vae,
        {"sample": {0: "batch"}},
        block_out_channels=(32, 64),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        layers_per_block=1,
        norm_num_groups=8,
    ),
    "pt2 script17",
)
row(
    "dit-2",
    "dit",
    diffusers(
        "DiTTransformer2DModel",
        lambda number: {
            "hidden_states": normal(number + 2, 4, 32, 32),
            "timestep": tokens(1, number + 2, 900)[0],
            "class_labels": tokens(1, number + 2, 900)[0],
        },
        {"hidden_states": {0: "batch"}, "timestep": {0: "batch"}, "class_labels": {0: "batch"}},
        num_attention_heads=6,
        attention_head_dim=64,
        num_layers=2,
        sample_size=32,
        in_channels=4,
        out_channels=8,
        norm_type="ada_norm_zero",
    ),
    ALL + " pt2 pt2-core script14 pt2-strict fp16",
)
row(
    "pixart-2",
    "dit",
    diffusers(
        "PixArtTransformer2DModel",
        lambda number: {
            "hidden_states": normal(number + 2, 4, 32, 32),
            "encoder_hidden_states": normal(number + 2, 9, 768),
            "timestep": tokens(1, number + 2, 900)[0],
        },
        {name: {0: "batch"} for name in ("hidden_states", "encoder_hidden_states", "timestep")},
        num_attention_heads=6,
        attention_head_dim=64,
        num_layers=2,
        sample_size=32,
        cross_attention_dim=384,
        caption_channels=768,
        use_additional_conditions=False,
    ),
    "pt2-dyn dynamo18",
)
row(
    "patchtst",
    "patchtst",
    series(
        "PatchTSTForPrediction",
        "PatchTSTConfig",
        512,
        7,
        ("prediction_outputs",),
        num_input_channels=7,
        context_length=512,
        patch_length=12,
        patch_stride=12,
        prediction_length=96,
        d_model=128,
        num_hidden_layers=3,
        num_attention_heads=16,
        ffn_dim=512,
    ),
    ALL + " pt2 pt2-core script14 q-dyn pt2-dyn@2.9",
    True,
)
row(
    "patchtsmixer",
    "patchtst",
    series(
        "PatchTSMixerForPrediction",
        "PatchTSMixerConfig",
        512,
        7,
        ("prediction_outputs",),
        num_input_channels=7,
        context_length=512,
        patch_length=8,
        patch_stride=8,
        prediction_length=96,
        d_model=48,
    ),
    "pt2-dyn dynamo18 script17",
    True,
)
row("encodec", "encodec", encodec, ALL + " pt2 pt2-dyn@2.9 script14 dynamo20 pt2-core", True)
row(
    "vits-dac",
    "encodec",
    lambda: Case(
        build("DacModel", "DacConfig", encoder_hidden_size=32, decoder_hidden_size=256, hidden_size=128),
        [{"audio": normal(2, 1, 2560)}, {"audio": normal(3, 1, 4096)}],
        {"audio": {0: "batch", 2: "samples"}},
        lambda model, audio: [model.encoder(audio), model.decoder(model.encoder(audio))],
    ),
    "pt2-dyn script17",
)
row("ast-2", "wav2vec2", lambda: spectrogram(), "pt2-dyn dynamo18")
row("vilt-2", "clip", lambda: vilt(), "pt2 script17")
row("blip-text", "clip", lambda: blip(), "pt2-dyn dynamo18")


def spectrogram():
    model = build("ASTForAudioClassification", "ASTConfig", num_hidden_layers=2, num_labels=35, max_length=256)
    return Case(
        model,
        [{"input_values": normal(2, 256, 128)}, {"input_values": normal(3, 256, 128)}],
        {"input_values": {0: "batch"}},
        outputs("logits"),
    )


def vilt():
    model = build("ViltModel", "ViltConfig", num_hidden_layers=2, vocab_size=1000, image_size=224)
    return Case(
        model,
        [{"input_ids": tokens(1, 12, 900), "attention_mask": mask(1, 12), "pixel_values": images(1, 224)}],
        {},
        outputs("last_hidden_state"),
    )


def blip():
    model = build("BlipTextModel", "BlipTextConfig", num_hidden_layers=2, vocab_size=1000, encoder_hidden_size=768)
    sets = [{"input_ids": tokens(batch, length, 900), "attention_mask": mask(batch, length)} for batch, length in ((2, 9), (3, 12))]
    return Case(model, sets, {name: {0: "batch", 1: "sequence"} for name in sets[0]}, outputs("last_hidden_state", is_decoder=False))
