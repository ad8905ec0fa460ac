"""What rewrites an ONNX file as ONNX Runtime's own tools do: its optimisers, quantisers and converters. Each takes the case, the source
file, the file to write and the row's options."""


class Calibration:
    """The case's inputs as onnxruntime's calibration reads them."""

    def __init__(self, case):
        self.sets = iter([{name: value.numpy() for name, value in inputs.items()} for inputs in case.inputs])

    def get_next(self):
        return next(self.sets, None)


def prepared(source):
    """The file as the documentation says to prepare it: shapes inferred, batch norms folded."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    target = source.with_name("source-prepared.onnx")
    quant_pre_process(str(source), str(target), skip_symbolic_shape=True)
    return target


def dynamic(case, source, target, options):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(prepared(source)), str(target), weight_type=QuantType.QInt8, per_channel=options.get("per_channel", False))


def dynamic_u8(case, source, target, options):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(source), str(target), weight_type=QuantType.QUInt8)


def static(form, per_channel, activation="QUInt8", weight="QInt8"):
    def rewrite(case, source, target, options):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        class Reader(Calibration, CalibrationDataReader):
            pass

        quantize_static(
            str(prepared(source)),
            str(target),
            Reader(case),
            quant_format=getattr(QuantFormat, form),
            per_channel=per_channel,
            activation_type=getattr(QuantType, activation),
            weight_type=getattr(QuantType, weight),
        )

    return rewrite


def matmul_bits(bits, block, symmetric, form="QOperator", accuracy=None):
    def rewrite(case, source, target, options):
        import onnx
        from onnxruntime.quantization import matmul_nbits_quantizer as tool
        from onnxruntime.quantization import QuantFormat

        model = onnx.load(str(source))
        tool_object = tool.MatMulNBitsQuantizer(
            model, bits=bits, block_size=block, is_symmetric=symmetric, accuracy_level=accuracy, quant_format=getattr(QuantFormat, form)
        )
        tool_object.process()
        tool_object.model.save_model_to_file(str(target), False)

    return rewrite


def transformer(kind, half=False):
    def rewrite(case, source, target, options):
        from onnxruntime.transformers import optimizer

        config = case.config
        heads = getattr(config, "num_attention_heads", 0) or getattr(config, "n_head", 0) or 0
        width = getattr(config, "hidden_size", 0) or getattr(config, "n_embd", 0) or 0
        model = optimizer.optimize_model(
            str(source),
            model_type=options.get("optimizer", kind),
            num_heads=heads,
            hidden_size=width,
            opt_level=options.get("opt_level"),
            use_gpu=False,
        )
        if half:
            model.convert_float_to_float16(keep_io_types=True)
        model.save_model_to_file(str(target))

    return rewrite


def session(level):
    """What ONNX Runtime itself runs after its graph optimisers, saved."""

    def rewrite(case, source, target, options):
        import onnxruntime

        session_options = onnxruntime.SessionOptions()
        session_options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        session_options.optimized_model_filepath = str(target)
        session_options.log_severity_level = 3
        onnxruntime.InferenceSession(str(source), session_options, providers=["CPUExecutionProvider"])

    return rewrite


def half(case, source, target, options):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True), str(target))


# This form raises the file's opset to 21 without converting its nodes: it needs a file of that opset.
OF_OPSET_21 = ("q4-qdq",)
REWRITERS = {
    "q-dyn": dynamic,
    "q-dyn-u8": dynamic_u8,
    "q-qdq": static("QDQ", True),
    "q-qop": static("QOperator", False, weight="QUInt8"),
    "q-qdq-s8": static("QDQ", False, "QInt8"),
    "q4-32": matmul_bits(4, 32, True),
    "q4-128-asym": matmul_bits(4, 128, False),
    "q4-16-acc4": matmul_bits(4, 16, False, accuracy=4),
    "q8-32": matmul_bits(8, 32, False),
    "q4-qdq": matmul_bits(4, 32, True, "QDQ"),
    "ortopt": transformer("bert"),
    "ortopt-gpt2": transformer("gpt2"),
    "ortopt-vit": transformer("vit"),
    "ortopt-bart": transformer("bart"),
    "ortopt-fp16": transformer("bert", True),
    "ortopt-ext": session("ORT_ENABLE_EXTENDED"),
    "fp16": half,
}
