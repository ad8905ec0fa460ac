//===- AttributeKinds.cpp - what kind of value an attribute has -----------===//
#include "AttributeKinds.h"

#include <iterator>

namespace dmxc::onnxfe {
namespace {

struct KindText {
  const char *name, *words;
};
constexpr KindText kKinds[] = {{"int", "an integer"},
                               {"float", "a number"},
                               {"string", "a string"},
                               {"ints", "a list of integers"},
                               {"floats", "a list of numbers"},
                               {"strings", "a list of strings"},
                               {"tensor", "a tensor"},
                               {"sparse_tensor", "a sparse tensor"},
                               {"graph", "a graph"},
                               {"type", "a type"}};

// What is not here is an integer.
constexpr std::string_view kFloats =
    "activation_gamma,alpha,beta,bias,clip,cubic_coeff_a,default_float,epsilon,"
    "extrapolation_value,gamma,height_scale,k_norm_epsilon,lambd,limit,mask_filter_value,max,min,"
    "momentum,q_norm_epsilon,qk_norm_epsilon,ratio,replaced_value_float,scale,softcap,"
    "spatial_scale,swiglu_limit,threshold,value_float,width_scale";
constexpr std::string_view kStrings =
    "activation,activation_type,aggregate_function,approximate,auto_pad,"
    "coordinate_transformation_mode,default_string,direction,equation,k_quant_type,"
    "keep_aspect_ratio_policy,kernel_type,metric,mode,nearest_mode,norm,padding_mode,"
    "post_transform,quant_type,reduction,round_mode,update_rule,v_quant_type,value_string";
constexpr std::string_view kIntLists =
    "axes,cats_int64s,class_ids,class_nodeids,class_treeids,classlabels_int64s,classlabels_ints,"
    "consumed_inputs,dilations,directions,ends,imputed_value_int64s,inputdimensions,kernel_shape,"
    "keys_int64s,leaf_targetids,ngram_counts,ngram_indexes,nodes_falseleafs,nodes_falsenodeids,"
    "nodes_featureids,nodes_missing_value_tracks_true,nodes_nodeids,nodes_treeids,nodes_trueleafs,"
    "nodes_truenodeids,output_padding,output_shape,paddings,pads,perm,pool_int64s,pooled_shape,"
    "qkv_hidden_sizes,scan_input_axes,scan_input_directions,scan_output_axes,scan_output_directions,"
    "shape,split,starts,strides,target_ids,target_nodeids,target_treeids,tree_roots,value_ints,"
    "values_int64s,vectors_per_class";
constexpr std::string_view kFloatLists =
    "activation_alpha,activation_beta,activation_params,base_values,class_weights,coefficients,"
    "imputed_value_floats,intercepts,kernel_params,keys_floats,nodes_hitrates,nodes_values,offset,"
    "prob_a,prob_b,rho,scales,support_vectors,target_weights,value_floats,values_floats,weights";
constexpr std::string_view kStringLists =
    "activations,cats_strings,classlabels_strings,keys_strings,nodes_modes,pool_strings,"
    "value_strings,values_strings";
constexpr std::string_view kTensors =
    "base_values_as_tensor,class_weights_as_tensor,default_tensor,keys_tensor,leaf_weights,"
    "membership_values,nodes_hitrates_as_tensor,nodes_splits,nodes_values_as_tensor,"
    "target_weights_as_tensor,value,values_tensor";
constexpr std::string_view kGraphs = "body,else_branch,prob_mod,score_mod,then_branch";

bool isIn(std::string_view list, std::string_view name) {
  for (size_t at = list.find(name); at != list.npos; at = list.find(name, at + 1))
    if ((at == 0 || list[at - 1] == ',') && (at + name.size() == list.size() || list[at + name.size()] == ','))
      return true;
  return false;
}

} // namespace

const char *describe(AttributeKind kind) { return kKinds[static_cast<size_t>(kind)].words; }
const char *nameOf(AttributeKind kind) { return kKinds[static_cast<size_t>(kind)].name; }

AttributeKind kindNamed(std::string_view name) {
  size_t kind = 0;
  while (kind + 1 < std::size(kKinds) && name != kKinds[kind].name)
    ++kind;
  return static_cast<AttributeKind>(kind);
}

AttributeKind usualKind(std::string_view attribute) {
  return isIn(kFloats, attribute)        ? AttributeKind::Float
         : isIn(kStrings, attribute)     ? AttributeKind::String
         : isIn(kIntLists, attribute)    ? AttributeKind::Ints
         : isIn(kFloatLists, attribute)  ? AttributeKind::Floats
         : isIn(kStringLists, attribute) ? AttributeKind::Strings
         : isIn(kTensors, attribute)     ? AttributeKind::Tensor
         : isIn(kGraphs, attribute)      ? AttributeKind::Graph
         : attribute == "sparse_value"   ? AttributeKind::SparseTensor
         : attribute == "type"           ? AttributeKind::Type
                                         : AttributeKind::Int;
}

} // namespace dmxc::onnxfe
