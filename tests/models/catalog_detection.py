"""Detection and segmentation."""

from catalog import Case, enliven, images, row
from catalog_vision import classifier
from huggingface import build, outputs

ALL = "pt2-dyn dynamo18 script17"


def segmenter(name, size=128, **arguments):
    def make():
        import torch
        import torchvision.models.segmentation as library

        torch.manual_seed(0)
        case = classifier(
            enliven(getattr(library, name)(weights=None, weights_backbone=None, num_classes=21, **arguments)).eval(), size, True
        )
        case.call = lambda model, image: model(image)["out"]
        return case

    return make


def detector(name, size=320, **arguments):
    """torchvision's detectors take lists of images and give boxes, scores and labels; the labels are ordered by the scores."""

    def make():
        import torch
        import torchvision.models.detection as library

        torch.manual_seed(0)
        model = enliven(getattr(library, name)(weights=None, weights_backbone=None, num_classes=21, **arguments)).eval()

        def call(model, image):
            found = model([image])[0]
            return [found["boxes"], found["scores"], found["labels"]]

        return Case(model, [{"image": images(1, size)[0]}], {}, call, {"2": "1"})

    return make


def heads(name, size=320, **arguments):
    """The same without the selection of boxes: what people export to run it elsewhere."""

    def make():
        import torch
        import torchvision.models.detection as library

        torch.manual_seed(0)
        model = enliven(getattr(library, name)(weights=None, weights_backbone=None, num_classes=21, **arguments)).eval()

        def call(model, image):
            features = list(model.backbone(image).values())
            return list(model.head(features).values())

        return Case(model, [{"image": images(2, size)}, {"image": images(3, size)}], {"image": {0: "batch"}}, call)

    return make


def detr(kind, config, size, **sizes):
    def make():
        model = build(kind, config, **sizes)
        return Case(
            model,
            [{"pixel_values": images(2, size)}, {"pixel_values": images(3, size)}],
            {"pixel_values": {0: "batch"}},
            outputs("logits", "pred_boxes"),
            config=model.config,
        )

    return make


def backbone():
    import transformers

    return transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[32, 64, 128, 256], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage4"]
    )


def detr_small():
    model = build(
        "DetrForObjectDetection",
        "DetrConfig",
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone(),
        encoder_layers=2,
        decoder_layers=2,
        d_model=256,
        num_queries=100,
        num_labels=91,
    )
    return Case(
        model,
        [{"pixel_values": images(2, 224, 288)}, {"pixel_values": images(3, 224, 288)}],
        {"pixel_values": {0: "batch"}},
        outputs("logits", "pred_boxes"),
    )


def dfine():
    """Boxes as distributions over distances, in a configuration as published but of two layers."""
    model = build("DFineForObjectDetection", "DFineConfig", decoder_layers=2, num_queries=30, num_labels=80, anchor_image_size=None)
    return Case(model, [{"pixel_values": images(1, 224)}], {}, outputs("logits", "pred_boxes"))


def rtdetr(kind, config):
    def make():
        import transformers

        resnet = transformers.RTDetrResNetConfig(
            embedding_size=32,
            hidden_sizes=[64, 128, 256, 512],
            depths=[1, 1, 1, 1],
            layer_type="basic",
            out_features=["stage2", "stage3", "stage4"],
        )
        model = build(
            kind,
            config,
            backbone=None,
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            backbone_config=resnet,
            encoder_in_channels=[128, 256, 512],
            decoder_layers=2,
            num_queries=100,
            anchor_image_size=None,
            num_labels=80,
        )
        return Case(
            model,
            [{"pixel_values": images(2, 320)}, {"pixel_values": images(3, 320)}],
            {"pixel_values": {0: "batch"}},
            outputs("logits", "pred_boxes"),
        )

    return make


def yolo(anchors_free, size=320):
    """A one-stage detector as the YOLO family has them: cross-stage blocks, pyramid pooling, three scales, boxes from a softmax over 16
    distances (v8) or from anchors (v5)."""

    def make():
        import torch
        import yolo as library

        torch.manual_seed(0)
        model = enliven(library.Yolo(classes=80, width=16, free=anchors_free)).eval()
        return Case(
            model, [{"images": images(2, size)}, {"images": images(3, size + 64, size)}], {"images": {0: "batch", 2: "height", 3: "width"}}
        )

    return make


def postprocessed():
    import torch
    import yolo as library

    torch.manual_seed(0)
    model = enliven(library.Detector(library.Yolo(classes=8, width=16, free=True))).eval()
    return Case(model, [{"images": images(1, 160)}], {}, None, {"2": "1"})


row("yolo-v8-like", "yolo", yolo(True), ALL + " pt2 script11 script12 dynamo20 q-qdq", True)
row("yolo-v5-like", "yolo", yolo(False), ALL + " pt2-core pt2-dyn@2.6 script11 q-qop")
row("yolo-nms", "yolo", postprocessed, "pt2 dynamo18 script17 script11")
row("deeplabv3-mobilenet", "segmentation", segmenter("deeplabv3_mobilenet_v3_large"), ALL + " pt2-dyn@2.6", True)
row("lraspp", "segmentation", segmenter("lraspp_mobilenet_v3_large"), ALL + " q-qdq", True)
row("fcn-resnet50", "segmentation", segmenter("fcn_resnet50"), "pt2-dyn script17", True)
row("retinanet-heads", "detection", heads("retinanet_resnet50_fpn"), "pt2-dyn dynamo18 script17", True)
row("ssdlite-heads", "detection", heads("ssdlite320_mobilenet_v3_large"), ALL + " q-qop", True)
row("ssdlite", "detection", detector("ssdlite320_mobilenet_v3_large"), "pt2 script11 script17 dynamo18", True)
row("retinanet", "detection", detector("retinanet_resnet50_fpn", 320, min_size=320, max_size=320), "pt2 script17", True)
row("faster-rcnn-mobilenet", "detection", detector("fasterrcnn_mobilenet_v3_large_320_fpn"), "pt2 script17 script11", True)
row("mask-rcnn", "detection", detector("maskrcnn_resnet50_fpn", 224, min_size=224, max_size=224), "script17", True)
row("detr-2", "detection", detr_small, ALL + " pt2")
row("rt-detr-2", "detection", rtdetr("RTDetrForObjectDetection", "RTDetrConfig"), ALL)
row("d-fine-2", "detection", dfine, "pt2 pt2-core")
row("rt-detr-v2-2", "detection", rtdetr("RTDetrV2ForObjectDetection", "RTDetrV2Config"), "pt2 script17")
row(
    "yolos-tiny-2",
    "detection",
    detr(
        "YolosForObjectDetection",
        "YolosConfig",
        224,
        hidden_size=192,
        num_attention_heads=3,
        intermediate_size=768,
        num_hidden_layers=2,
        image_size=[224, 224],
        use_mid_position_embeddings=False,
    ),
    ALL,
)
