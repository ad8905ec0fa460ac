"""What of the schemas no case can hit, and why; and which values of an attribute change what it does."""

GPU = "of CUDA alone; refused (wrong.py)"
NOT_INTEGER = "FP4, or activations of FP8: of CUDA alone; refused (wrong.py)"

VALUES = {
    "MatMulNBits": {"bits": [2, 4, 8], "block_size": [16, 32, 64, 128, 256], "accuracy_level": [0, 1, 2, 3, 4]},
    "GatherBlockQuantized": {"bits": [2, 4, 8]},
    "FusedMatMul": {"transA": [0, 1], "transB": [0, 1], "transBatchA": [0, 1], "transBatchB": [0, 1]},
    "GroupQueryAttention": {"causal": [0, 1], "do_rotary": [0, 1], "rotary_interleaved": [0, 1], "qk_output": [0, 1, 2],
                            "smooth_softmax": [-1, 0, 1], "k_quant_type": ["NONE", "PER_TENSOR", "PER_CHANNEL"],
                            "v_quant_type": ["NONE", "PER_TENSOR", "PER_CHANNEL"], "kv_cache_bit_width": [4, 8],
                            "sliding_window_cache": [0, 1]},
    "MultiHeadAttention": {"unidirectional": [0, 1]},
    "Attention": {"unidirectional": [0, 1], "do_rotary": [0, 1], "past_present_share_buffer": [0, 1]},
    "RotaryEmbedding": {"interleaved": [0, 1], "is_packed_batching": [0, 1]},
    "MoE": {"activation_type": ["relu", "gelu", "silu", "swiglu", "identity", "relu2", "geglu"], "swiglu_fusion": [0, 1, 2],
            "normalize_routing_weights": [0, 1]},
    "QMoE": {"activation_type": ["relu", "gelu", "silu", "swiglu", "identity", "relu2", "geglu"], "swiglu_fusion": [0, 1, 2],
             "normalize_routing_weights": [0, 1], "expert_weight_bits": [2, 3, 4, 8], "block_size": [16, 32, 64, 128, 256],
             "accuracy_level": [0, 1, 4], "weights_prepacked": [-1, 0]},
    "GroupNorm": {"activation": [0, 1], "channels_last": [0, 1]},
    "SkipGroupNorm": {"activation": [0, 1], "channels_last": [0, 1]},
    "FusedConv": {"activation": ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"],
                  "auto_pad": ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]},
    "QLinearAveragePool": {"auto_pad": ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"], "ceil_mode": [0, 1], "count_include_pad": [0, 1],
                           "channels_last": [0, 1]},
    "FusedGemm": {"activation": ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "HardSigmoid"]},
    "QAttention": {"unidirectional": [0, 1]},
    "QLinearGlobalAveragePool": {"channels_last": [0, 1]},
    "QLinearReduceMean": {"keepdims": [0, 1]},
    "RelativePositionBias": {"is_bidirectional": [0, 1]},
    "LinearAttention": {"update_rule": ["linear", "gated", "delta", "gated_delta"]},
    "CausalConvWithState": {"activation": ["silu", "swish", "none"], "channels_last": [0, 1]},
    "QGemm": {"transA": [0, 1], "transB": [0, 1]}, "QLinearConv": {"channels_last": [0, 1]}, "NhwcMaxPool": {"ceil_mode": [0, 1]},
    "MatMulBnb4": {"quant_type": [0, 1], "transB": [0, 1]}, "BiasSoftmax": {"is_inner_broadcast": [0, 1]},
    "ReduceSumInteger": {"keepdims": [0, 1]},
    "EmbedLayerNormalization": {"mask_index_type": [0, 1]},
}

BEHIND = "what stands behind it has no meaning without it"

EXEMPT = {
    ("MultiHeadAttention", "past_key", "absent before others"): BEHIND,
    ("MultiHeadAttention", "past_value", "absent before others"): BEHIND,
    ("MultiHeadAttention", "past_sequence_length", "absent before others"): BEHIND,
    ("QGemm", "y_scale", "absent before others"): BEHIND,
    ("FusedMatMulActivation", "activation_axis"): "no activation that is fused has an axis",
    ("FusedMatMulActivation", "activation_gamma"): "no activation that is fused takes it",
    ("MoE", "fc3_experts_weights", "absent before others"): BEHIND,
    ("QMoE", "router_weights", "absent before others"): NOT_INTEGER,
    ("QMoE", "fc1_global_scale", "absent before others"): BEHIND,
    ("QMoE", "fc2_global_scale", "absent before others"): NOT_INTEGER,
    ("SkipSimplifiedLayerNormalization", "mean"): "without centring there is none; refused (wrong.py)",
    ("MultiHeadAttention", "cache_indirection"): "beams; refused (wrong.py)",
    ("GroupQueryAttention", "T_CACHE", "float8e4m3fn"): GPU,
    **{("QMoE", name): NOT_INTEGER for name in ("fc1_act_scale", "fc2_act_scale",
                                                "fc1_act_block_scale",
                                                 "fc2_act_block_scale")},
    ("QMoE", "T2", "float8e8m0"): NOT_INTEGER, ("QMoE", "T2", "float8e4m3fn"): NOT_INTEGER,
    **{("QMoE", f"fc{i}_scales"): "integers have scales in any case" for i in (1, 2)},
    ("CausalConvWithState", "state_update"): GPU,
    ("SimplifiedLayerNormalization", "U", "double"): "`stash_type` is 1 wherever the operator is written",
}
