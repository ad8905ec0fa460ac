"""Architectures whose torch.export keeps what torch composes: windows as columns, sampled grids, norms, names of numpy."""

from catalog import Case, images, mask, normal, row, tokens
from catalog_seq2seq import pair
from catalog_vision import timm
from huggingface import build, outputs, text

SMALL = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "num_hidden_layers": 2}


def pictures(kind, config, size, names, **sizes):
    """A model of transformers that reads images of one size."""

    def make():
        model = build(kind, config, "eager", **sizes)
        return Case(model, [{"pixel_values": images(2, size)}], {}, outputs(*names), config=model.config)

    return make


def raft():
    import torch
    import torchvision.models.optical_flow as library

    from catalog import enliven

    torch.manual_seed(0)
    model = enliven(library.raft_small(weights=None)).eval()
    sets = [{"first": images(1, 128, seed=3).tanh(), "second": images(1, 128, seed=4).tanh()}]
    return Case(model, sets, {}, lambda model, first, second: model(first, second, num_flow_updates=3)[-1])


def layout():
    """Tokens with the boxes that they stand in, and the page's image."""
    import torch

    model = build("LayoutLMv3Model", "LayoutLMv3Config", "eager", vocab_size=500, max_position_embeddings=64, max_2d_position_embeddings=128,
                  coordinate_size=8, shape_size=16, input_size=64, **SMALL)
    corners = torch.randint(0, 60, (2, 12, 2), generator=torch.Generator().manual_seed(6))
    inputs = {"input_ids": tokens(2, 12, 500), "bbox": torch.cat([corners, corners + 20], -1), "attention_mask": mask(2, 12),
              "pixel_values": images(2, 64)}
    return Case(model, [inputs], {}, outputs("last_hidden_state"), config=model.config)


def owl():
    """Boxes of what texts name: class scores and corners."""
    tower = dict(SMALL)
    model = build("OwlViTForObjectDetection", "OwlViTConfig", "eager",
                  text_config={**tower, "vocab_size": 500, "max_position_embeddings": 16},
                  vision_config={**tower, "image_size": 64, "patch_size": 16}, projection_dim=64)
    inputs = {"input_ids": tokens(4, 16, 500), "attention_mask": mask(4, 16), "pixel_values": images(2, 64)}
    return Case(model, [inputs], {}, outputs("logits", "pred_boxes"), config=model.config)


def deformable():
    model = build("DeformableDetrForObjectDetection", "DeformableDetrConfig", "eager", use_timm_backbone=False, use_pretrained_backbone=False,
                  backbone=None, backbone_config=resnet(), d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                  decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_queries=20, num_feature_levels=3)
    return Case(model, [{"pixel_values": images(1, 128)}], {}, outputs("logits", "pred_boxes"), config=model.config)


def llava():
    """A text with the places of an image's patches."""
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = build("LlavaForConditionalGeneration", "LlavaConfig", image_token_index=511, image_token_id=511,
                  vision_config={"model_type": "clip_vision_model", "image_size": 32, "patch_size": 8, "projection_dim": 32, **tower},
                  text_config={"model_type": "llama", "vocab_size": 512, "num_key_value_heads": 2, **SMALL})
    ids = tokens(1, 24, 500)
    ids[:, 2:18] = 511
    return Case(model, [{"input_ids": ids, "pixel_values": images(1, 32)}], {}, outputs("logits"), config=model.config)


def siglip2():
    """Texts, and images of patches of which some are none."""
    import torch

    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = build("Siglip2Model", "Siglip2Config", text_config={"vocab_size": 512, "max_position_embeddings": 16, "projection_size": 32, **tower},
                  vision_config={"num_patches": 16, "patch_size": 4, **tower})
    patches = torch.ones(2, 16, dtype=torch.long)
    patches[1, 12:] = 0
    inputs = {"input_ids": tokens(2, 16, 500), "pixel_values": normal(2, 16, 48), "pixel_attention_mask": patches,
              "spatial_shapes": torch.tensor([[4, 4], [3, 4]])}
    return Case(model, [inputs], {}, outputs("logits_per_image", "text_embeds", "image_embeds"), config=model.config)


def fourier():
    """A Fourier neural operator: complex weights on the lowest frequencies."""
    import small_modules
    import torch

    torch.manual_seed(0)
    return Case(small_modules.FourierOperator().eval(), [{"x": normal(2, 32, 32, 3)}])


def resnet():
    from transformers import ResNetConfig

    return ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1], layer_type="basic",
                        out_features=["stage2", "stage3", "stage4"])


def mask2former():
    from transformers import SwinConfig

    backbone = SwinConfig(image_size=64, embed_dim=24, depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4], window_size=4,
                          out_features=["stage1", "stage2", "stage3", "stage4"])
    model = build("Mask2FormerForUniversalSegmentation", "Mask2FormerConfig", "eager", backbone_config=backbone, feature_size=32, mask_feature_size=32,
                  hidden_dim=32, encoder_feedforward_dim=64, encoder_layers=2, decoder_layers=3, num_attention_heads=4, dim_feedforward=64, num_queries=10,
                  use_pretrained_backbone=False, use_timm_backbone=False)
    return Case(model, [{"pixel_values": images(1, 64)}], {}, outputs("class_queries_logits", "masks_queries_logits"), config=model.config)


row("convbert-2", "convbert", text("ConvBertModel", "ConvBertConfig", names=("last_hidden_state",), attention="eager", embedding_size=64, **SMALL), "pt2 pt2-dyn pt2-core")
row("funnel-2", "funnel", text("FunnelModel", "FunnelConfig", names=("last_hidden_state",), attention="eager", lengths=((2, 16),), d_model=64, n_head=4, d_head=16,
                              d_inner=128, block_sizes=[1, 1]), "pt2 pt2-core")
row("layoutlmv3-2", "layoutlm", layout, "pt2 pt2-core")
row("prophetnet-2", "prophetnet", pair("ProphetNetForConditionalGeneration", "ProphetNetConfig", attention="eager", hidden_size=64, encoder_ffn_dim=128,
                                      decoder_ffn_dim=128, num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4,
                                      num_decoder_attention_heads=4), "pt2 pt2-dyn pt2-core")
row("mobilevitv2-050", "timm", timm("mobilevitv2_050", 256), "pt2 pt2-dyn pt2-core", True)
row("volo-d1", "timm", timm("volo_d1_224"), "pt2 pt2-core", True)
row("raft-small", "flow", raft, "pt2 pt2-core")
row("deformable-detr-2", "detection", deformable, "pt2 pt2-core")
row("mask2former-2", "segmentation", mask2former, "pt2 pt2-core")
row("owlvit-2", "detection", owl, "pt2 pt2-core")
row("llava-2", "llava", llava, "pt2 pt2-core")
row("siglip2-2", "siglip", siglip2, "pt2 pt2-core")
row("fourier-operator", "fourier", fourier, "pt2 pt2-core")
