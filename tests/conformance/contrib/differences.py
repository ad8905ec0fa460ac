"""Where ONNX Runtime's CPU provider does not give what the definitions say: case (a pattern) -> why."""

# Computed, with other values.
DIFFERENCES = {
    "MatMulNBits_[24]bits_groups": "with g_idx the kernel takes 2^(bits - 1) instead of packed zero points; float ones it takes",
    "MatMulNBits_groups_in_order": "with g_idx the kernel takes 2^(bits - 1) instead of packed zero points; float ones it takes",
    "MatMulNBits_accuracy4*": "accuracy_level 4 lets the kernel round A to int8; a minimum accuracy, which the exact product has too",
}

# Not computed: no kernel for the operator, the type or the form.
LACKING = {
    "MatMulNBits_*bits_bf16": "no kernel of bfloat16",
    "MatMulNBits_8bits_zero_float": "no kernel of 8 bits with float zero points",
    "MatMulNBits_8bits_groups": "no kernel of 8 bits with g_idx",
    "FusedMatMul_bf16": "no kernel of bfloat16",
    "GatherBlockQuantized_*bf16": "no kernel of bfloat16",
    "SimplifiedLayerNormalization_contrib_domain*": "the operator is declared in the default domain alone; exporters write both",
}
