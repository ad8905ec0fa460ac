"""Classifiers of images: torchvision's and timm's."""

from catalog import Case, enliven, images, row

ALL = "pt2-dyn dynamo18 script17"


def torchvision(name, size=224, open_size=False, **arguments):
    def build():
        import torchvision.models
        import torch

        torch.manual_seed(0)
        model = enliven(torchvision.models.get_model(name, weights=None, **arguments)).eval()
        return classifier(model, size, open_size)

    return build


def timm(name, size=224, open_size=False, **arguments):
    def build():
        import timm as library
        import torch

        torch.manual_seed(0)
        return classifier(enliven(library.create_model(name, pretrained=False, **arguments)).eval(), size, open_size)

    return build


def classifier(model, size, open_size):
    second = images(3, size + 32, size + 64) if open_size else images(3, size)
    dims = {0: "batch", 2: "height", 3: "width"} if open_size else {0: "batch"}
    return Case(model, [{"image": images(2, size)}, {"image": second}], {"image": dims})


row(
    "mobilenet-v3-small",
    "torchvision",
    torchvision("mobilenet_v3_small"),
    ALL + " pt2 pt2-core dynamo20 script11 script13 q-qdq q-qop ortopt-ext",
    True,
)
row(
    "resnet18",
    "torchvision",
    torchvision("resnet18"),
    ALL + " pt2-strict pt2-dyn@2.6 pt2-dyn@2.9 dynamo18@2.9 script11 q-qdq q-qop ortopt-ext",
    True,
)
row("squeezenet", "torchvision", torchvision("squeezenet1_1"), "pt2-dyn script11 script20 q-qop", True)
row("shufflenet-v2", "torchvision", torchvision("shufflenet_v2_x1_0"), "pt2-dyn pt2-dyn@2.6 dynamo19 script14 q-qop", True)
row("regnet-y-400mf", "torchvision", torchvision("regnet_y_400mf"), "pt2-dyn pt2@2.6 dynamo21 script16 q-qdq", True)
row("efficientnet-b0", "torchvision", torchvision("efficientnet_b0"), ALL + " pt2-core script13 q-qdq q-qop", True)
row("mnasnet", "torchvision", torchvision("mnasnet1_0"), "pt2-strict dynamo20 script12 q-qop", True)
row("resnet50", "torchvision", torchvision("resnet50"), ALL + " pt2 pt2-dyn@2.6 dynamo23 script11 q-qdq q-qop ortopt-ext fp16", True)
row("densenet121", "torchvision", torchvision("densenet121"), "pt2-dyn dynamo18 script15", True)
row("googlenet", "torchvision", torchvision("googlenet", aux_logits=False, init_weights=False), "pt2 script12", True)
row("inception-v3", "torchvision", torchvision("inception_v3", 299, aux_logits=False, init_weights=False), "pt2-dyn script18", True)
row("convnext-tiny", "torchvision", torchvision("convnext_tiny"), ALL + " pt2-core-static", True)
row("vit-b-16", "torchvision", torchvision("vit_b_16"), ALL + " pt2-strict-dyn@2.9 ortopt-ext fp16", True)
row("swin-t", "torchvision", torchvision("swin_t"), ALL + " pt2-dyn@2.6", True)
row("swin-v2-t", "torchvision", torchvision("swin_v2_t"), "pt2-dyn dynamo22", True)
row("maxvit-t", "torchvision", torchvision("maxvit_t"), "pt2 dynamo18 script17", True)
row("vgg11-bn", "torchvision", torchvision("vgg11_bn"), "script11", True)

row("mobilevit-s", "timm", timm("mobilevit_s", 256), ALL + " pt2-dyn@2.6 q-qdq", True)
row("mobilenetv4", "timm", timm("mobilenetv4_conv_small"), "pt2-dyn dynamo20 q-qop", True)
row("deit-tiny", "timm", timm("deit_tiny_patch16_224"), ALL + " q-dyn ortopt-vit", True)
row("mixer-b16", "timm", timm("mixer_b16_224", num_classes=100), "pt2-dyn dynamo18", True)
row("levit-128s", "timm", timm("levit_128s"), "pt2-dyn script17", True)
row("edgenext-xxs", "timm", timm("edgenext_xx_small", 256), "pt2-dyn dynamo19 script17", True)
row("ghostnet", "timm", timm("ghostnet_100"), "pt2-strict script14", True)
row("repvit", "timm", timm("repvit_m0_9"), "pt2-dyn dynamo18", True)
row("fastvit-t8", "timm", timm("fastvit_t8", 256), "pt2-dyn script17", True)
row("efficientformer", "timm", timm("efficientformer_l1"), "pt2 dynamo18", True)
row("poolformer", "timm", timm("poolformer_s12"), "pt2-dyn@2.9 script13", True)
row("pvt-v2", "timm", timm("pvt_v2_b0"), "pt2-dyn dynamo18", True)
row("xcit-nano", "timm", timm("xcit_nano_12_p16_224"), "pt2 dynamo18", True)
row("coatnet-0", "timm", timm("coatnet_0_rw_224"), "pt2-dyn dynamo18", True)
row("beit-base", "timm", timm("beit_base_patch16_224", depth=2), "pt2-dyn script17")
row("eva02-small", "timm", timm("eva02_small_patch14_224", depth=2), "pt2-dyn dynamo18")
row("hrnet-w18-small", "timm", timm("hrnet_w18_small", open_size=True), "pt2-dyn script17", True)
row("nfnet-l0", "timm", timm("nfnet_l0"), "pt2-dyn dynamo18", True)
row("tf-efficientnet-lite0", "timm", timm("tf_efficientnet_lite0"), "pt2 script17 q-qdq", True)
row("convnextv2-atto", "timm", timm("convnextv2_atto", open_size=True), "pt2-dyn dynamo18 script17", True)
row("resnetv2-bit", "timm", timm("resnetv2_50x1_bit", open_size=False), "pt2-dyn script17", True)
