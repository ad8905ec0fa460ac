//===- Refused.cpp - operators of com.microsoft that are refused, and why --===//
#include "Contrib.h"

namespace dmxc::onnxfe {
namespace {

void refuse(std::vector<OpRows> &rows, const std::vector<const char *> &names, const char *reason,
            const char *domain = kMicrosoft) {
  for (const char *name : names)
    rows.push_back({name, {1}, ">0", nullptr, "", {}, reason, domain});
}

/// What they compute has no place here.
void refuseMeanings(std::vector<OpRows> &rows) {
  refuse(rows, {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"},
         "it generates text in a loop of its own; export the decoder alone, and choose the tokens in the application");
  refuse(rows, {"BifurcationDetector", "SpeculativePrefixCommit", "NGramHashMapping", "VarlenNGramHashMapping"},
         "it follows the tokens of a search, which is the application's part");
  refuse(rows, {"DynamicTimeWarping"}, "it follows one path step by step, which is the application's part");
  refuse(rows, {"Tokenizer"}, "it works on strings, which have no tensor meaning here");
  refuse(rows, {"SparseToDenseMatMul"},
         "a sparse operand of a run has no tensor meaning here; export it as a dense matrix");
  refuse(rows, {"MurmurHash3"}, "it hashes the words of a vocabulary, which is the application's part");
  refuse(rows, {"MaxpoolWithMask"}, "its definition says only that it is for internal use");
  refuse(rows, {"Irfft"}, "its definition does not say what the result is divided by; export the model with DFT");
  refuse(rows,
         {"ConvStateReplay",
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
          "QEmbedLayerNormalization",
          "AttnLSTM",
          "WordConvEmbedding"},
         "it is not supported; save the model before the optimiser that makes it, or with its parts");
}

/// How their operands lie in memory is one device's, or one server's, affair.
void refuseForms(std::vector<OpRows> &rows) {
  refuse(rows, {"EPContext", "Snpe"},
         "it holds another compiler's program; export the model before that compiler saw it");
  refuse(rows,
         {"PackedAttention", "PackedMultiHeadAttention", "RemovePadding", "RestorePadding", "PagedAttention",
          "SparsePagedAttention"},
         "it packs sequences for a server's batches; export the model without packing");
  refuse(rows,
         {"GatherPacked", "MatMulPacked", "MoEPacked", "MatMulFpQ4", "MatMulBlockQuantizedFp4Weight",
          "MatMulBlockQuantizedFp8Weight", "GemmFloat8"},
         "its weights are packed for one device; export the model with MatMulNBits or as floats");
  refuse(rows, {"MatMulNBitsMlp", "MatMulNBitsQkv", "MatMulNBitsQLoRA", "RouterGateUpProj", "MoEGroupRouter"},
         "one device's optimiser makes it; save the model without optimising it for that device");
  refuse(rows,
         {"QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization", "QOrderedLongformerAttention",
          "QOrderedMatMul", "QuantizeWithOrder", "DequantizeWithOrder"},
         "its bytes lie in one device's order; quantise the model with QuantizeLinear and DequantizeLinear");
  refuse(rows, {"QuantizeBFP", "DequantizeBFP"},
         "block floating point is written as bytes that no standard gives; quantise the model with "
         "QuantizeLinear and DequantizeLinear");
  // What the optimiser writes for this machine's caches, in the level that models should not be saved with.
  refuse(rows,
         {"ReorderInput", "ReorderOutput", "Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool",
          "Upsample"},
         "its channels lie in blocks for one machine; save the optimised model at the level 'extended'",
         "com.microsoft.nchwc");
}

} // namespace

std::vector<OpRows> contribRefusedOps() {
  std::vector<OpRows> rows;
  refuseMeanings(rows);
  refuseForms(rows);
  return rows;
}

} // namespace dmxc::onnxfe
