//===- Refused.cpp - operators of com.microsoft that are refused, and why --===//
#include "Contrib.h"

namespace dmxc::onnxfe {

std::vector<OpRows> contribRefusedOps() {
  std::vector<OpRows> rows;
  auto refuse = [&](const std::vector<const char *> &names, const char *reason, const char *domain = kMicrosoft) {
    for (const char *name : names)
      rows.push_back({name, {1}, nullptr, "", {}, reason, domain});
  };
  refuse({"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"},
         "it generates text in a loop of its own; export the decoder alone, and choose the tokens in the application");
  refuse({"BifurcationDetector", "SpeculativePrefixCommit", "NGramHashMapping", "VarlenNGramHashMapping"},
         "it follows the tokens of a search, which is the application's part");
  refuse({"DynamicTimeWarping"}, "it follows one path step by step, which is the application's part");
  refuse({"Tokenizer", "MurmurHash3", "WordConvEmbedding"}, "it works on strings, which have no tensor meaning here");
  refuse({"EPContext", "Snpe"}, "it holds another compiler's program; export the model before that compiler saw it");
  refuse({"PackedAttention", "PackedMultiHeadAttention", "RemovePadding", "RestorePadding", "PagedAttention",
          "SparsePagedAttention"},
         "it packs sequences for a server's batches; export the model without packing");
  refuse({"GatherPacked", "MatMulPacked", "MoEPacked", "MatMulFpQ4", "MatMulBlockQuantizedFp4Weight",
          "MatMulBlockQuantizedFp8Weight", "GemmFloat8"},
         "its weights are packed for one device; export the model with MatMulNBits or as floats");
  refuse({"MatMulNBitsMlp", "MatMulNBitsQkv", "MatMulNBitsQLoRA", "RouterGateUpProj", "MoEGroupRouter"},
         "one device's optimiser makes it; save the model without optimising it for that device");
  refuse({"QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization", "QOrderedLongformerAttention",
          "QOrderedMatMul", "QuantizeWithOrder", "DequantizeWithOrder"},
         "its bytes lie in one device's order; quantise the model with QuantizeLinear and DequantizeLinear");
  refuse({"QuantizeBFP", "DequantizeBFP"},
         "block floating point is written as bytes that no standard gives; quantise the model with "
         "QuantizeLinear and DequantizeLinear");
  refuse({"SparseToDenseMatMul"}, "a sparse operand of a run has no tensor meaning here; export it as a dense matrix");
  refuse({"AttnLSTM"}, "it is no longer written by any exporter; export the model again");
  refuse({"MaxpoolWithMask"}, "it is for ONNX Runtime's own tests");
  refuse({"Irfft"}, "its definition does not say what the result is divided by; export the model with DFT");
  refuse({"ConvStateReplay",
          "GatedDeltaNetStateReplay",
          "Mamba2Verify",
          "HyperConnectionLowRankMix",
          "HyperConnectionPostMix",
          "HyperConnectionPreMix",
          "LinearAttentionGate",
          "GatedDeltaNet",
          "GatedRMSNorm",
          "BranchwiseRMSNorm",
          "RMSNormRotary",
          "EngramGate",
          "VarlenCausalConvWithState",
          "DynamicSparseAttention",
          "SparseAttention",
          "SparseAttentionIndexer",
          "PackedSparseAttentionIndexer",
          "PackedSparseAttentionIndexerMerge",
          "MRotaryEmbedding",
          "GemmaRotaryEmbedding",
          "DecoderAttention",
          "DecoderMaskedMultiHeadAttention",
          "DecoderMaskedSelfAttention",
          "LongformerAttention",
          "CausalConvWithState",
          "GatedRelativePositionBias",
          "QEmbedLayerNormalization"},
         "it is not supported; save the model before the optimiser that makes it, or with its parts");
  // What the optimiser writes for this machine's caches, in the level that models should not be saved with.
  refuse({"ReorderInput", "ReorderOutput", "Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool",
          "Upsample"},
         "its channels lie in blocks for one machine; save the optimised model at the level 'extended'",
         "com.microsoft.nchwc");
  return rows;
}

} // namespace dmxc::onnxfe
