//===- Refused.cpp - operators with no meaning here -----------------------===//
#include "../AtenTable.h"

namespace dmxc::torchfe {

std::vector<RefusedFamily> refusedFamilies() {
  return {
      {"a gradient of one operator; export the gradient with the program (a joint graph), which torch writes as core "
       "operators",
       {"_batch_norm_impl_index_backward",
        "_convolution_double_backward",
        "_embedding_bag_sparse_backward",
        "_gather_sparse_backward",
        "_pack_padded_sequence_backward",
        "_thnn_differentiable_gru_cell_backward",
        "_thnn_differentiable_lstm_cell_backward",
        "_thnn_fused_lstm_cell_backward",
        "_weight_norm_differentiable_backward",
        "affine_grid_generator_backward",
        "conv_tbc_backward",
        "cummaxmin_backward",
        "cumprod_backward",
        "embedding_backward",
        "embedding_sparse_backward",
        "fake_quantize_per_channel_affine_cachemask_backward",
        "fake_quantize_per_tensor_affine_cachemask_backward",
        "gather_backward",
        "get_gradients",
        "index_select_backward",
        "infinitely_differentiable_gelu_backward",
        "masked_select_backward",
        "matrix_exp_backward",
        "mish_backward",
        "to_dense_backward",
        "to_mkldnn_backward",
        "trace_backward",
        "value_selecting_reduction_backward"}},
      {"eigenvalues of matrices that are not symmetric, and LDL, are not known here; of symmetric ones "
       "torch.linalg.eigh "
       "is",
       {"linalg_eig", "linalg_eigvals", "_linalg_eigvals", "linalg_ldl_factor", "linalg_ldl_factor_ex",
        "linalg_ldl_solve"}},
      {"sparse tensors have no meaning here; export the model with dense ones",
       {"_rowwise_prune",
        "_sparse_bsc_tensor_unsafe",
        "_sparse_bsr_tensor_unsafe",
        "_sparse_compressed_tensor_unsafe",
        "_sparse_coo_tensor_unsafe",
        "_sparse_csc_tensor_unsafe",
        "_sparse_csr_tensor_unsafe",
        "_sparse_log_softmax.int",
        "_sparse_mm",
        "_sparse_mm.reduce",
        "_sparse_softmax.int",
        "_sparse_sum",
        "_sparse_sum.dim_dtype",
        "_sparse_sum.dtype",
        "coalesce",
        "smm",
        "sparse_bsc_tensor.ccol_row_value",
        "sparse_bsc_tensor.ccol_row_value_size",
        "sparse_bsr_tensor.crow_col_value",
        "sparse_bsr_tensor.crow_col_value_size",
        "sparse_coo_tensor.indices",
        "sparse_coo_tensor.indices_size",
        "sparse_csc_tensor.ccol_row_value",
        "sparse_csc_tensor.ccol_row_value_size",
        "sparse_csr_tensor.crow_col_value",
        "sparse_csr_tensor.crow_col_value_size",
        "sspaddmm",
        "to_dense",
        "to_sparse",
        "to_sparse.sparse_dim",
        "to_sparse_bsc",
        "to_sparse_bsr",
        "to_sparse_csc",
        "to_sparse_csr"}},
      {"weights that a library of torch has packed; export the model with its weights as tensors",
       {"_saturate_weight_to_fp16", "_wrapped_linear_prepack", "_wrapped_quantized_linear_prepacked",
        "choose_qparams_optimized", "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation",
        "fbgemm_linear_int8_weight", "fbgemm_linear_int8_weight_fp32_activation", "fbgemm_linear_quantize_weight",
        "fbgemm_pack_gemm_matrix_fp16", "fbgemm_pack_quantized_matrix", "fbgemm_pack_quantized_matrix.KN",
        "quantized_gru_cell", "quantized_lstm_cell", "quantized_rnn_relu_cell", "quantized_rnn_tanh_cell"}},
      {"packed sequences are not known here; pass sequences padded to one length",
       {"_pad_packed_sequence", "gru.data", "lstm.data", "rnn_relu.data", "rnn_tanh.data"}},
      {"random numbers differ from run to run; pass them to the program as an input",
       {"_sobol_engine_draw", "feature_alpha_dropout"}},
      {"a part of torch's own machinery, which means nothing in an exported program",
       {"_add_batch_dim", "_autocast_to_full_precision", "_autocast_to_reduced_precision", "_batch_norm_impl_index",
        "_remove_batch_dim", "_test_ambiguous_defaults.a", "_test_ambiguous_defaults.b",
        "_test_autograd_multiple_dispatch.ntonly", "_test_check_tensor", "_test_serialization_subcmul",
        "_test_string_default", "_to_cpu", "_unpack_dual", "data", "nested_to_padded_tensor", "pin_memory"}},
      {"sizes here are those of a tensor's values; pass them as numbers",
       {"_reshape_from_tensor", "histogramdd", "histogramdd.TensorList_bins", "histogramdd.int_bins", "narrow.Tensor",
        "tensor_split.tensor_indices_or_sections", "where"}},

      {"a form of a convolution that only torch's own code calls; export the model with torch.nn.functional's conv2d "
       "or conv3d",
       {"_convolution", "_slow_conv2d_forward", "slow_conv3d_forward", "_convolution.deprecated", "slow_conv3d",
        "thnn_conv2d"}},

      {"a loss that walks through targets is not computed here; export the model without it",
       {"ctc_loss.IntList", "ctc_loss.Tensor"}},
      {"torch looks at values to choose how it is computed, so that nothing takes it apart; write it with sums and "
       "products of tensors, or with sort",
       {"corrcoef", "cov"}},
      {"this function is not computed here; write it with torch's other functions, or pass its values as an input",
       {"igamma", "igammac", "special_gammainc", "special_gammaincc"}},
      {"sizes here are those of a tensor's values; write them with x.shape", {"_shape_as_tensor"}},

  };
}

std::vector<AtenRow> refusedOps() {
  const char *random = "random numbers differ from run to run; pass them to the program as an input";
  return {
      {"rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> "
       "Tensor",
       nullptr, random},
      {"randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> "
       "Tensor",
       nullptr, random},
      {"randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
       "-> "
       "Tensor",
       nullptr, random},
      {"randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       nullptr, random},
      {"rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, "
       "MemoryFormat? memory_format=None) -> Tensor",
       nullptr, random},
      {"randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       nullptr, random},
      {"bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", nullptr, random},
      {"bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", nullptr, random},
      {"multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
       nullptr, random},
      {"resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", nullptr,
       "a tensor that changes its storage has no place in an exported program"},
  };
}

} // namespace dmxc::torchfe
