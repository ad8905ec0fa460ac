# Each names the front ends that its models need. One ctest a class of dmxc_*_test.py.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(part messages bundles corsair schedule scripts texts)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/dmxc_${part}_test.py)
  file(STRINGS ${file} classes REGEX "^class [A-Za-z]+\\(Base\\)")
  foreach(class ${classes})
    string(REGEX REPLACE "^class ([A-Za-z]+).*" "\\1" class "${class}")
    set(formats onnx mlir)
    if(class MATCHES "^(Determinism|Digits|Sequences|Consumers|Compare)$")
      set(formats onnx)
    endif()
    dmxc_frontend_test(cli.dmxc.${class} "${formats}"
      Python3::Interpreter ${file} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR} ${class})
    set_tests_properties(cli.dmxc.${class} PROPERTIES TIMEOUT 900)
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()

# Every command of README.md and of the pages that it links to.
if(DMXC_SIGNATURES AND NOT DMXC_SANITIZE AND DMXC_TARGETS STREQUAL "cpu;corsair;aie;cuda")
  dmxc_frontend_test(cli.readme onnx
    Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/readme_test.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(cli.readme PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
else()
  dmxc_skip(cli.readme "this build lacks a target, signatures, or has sanitizers")
endif()

# The bundles run through the library, as an application's do.
dmxc_frontend_test(cli.python mlir
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} $<TARGET_FILE:dmxrt_shared>)
set_tests_properties(cli.python PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
dmxc_frontend_test(cli.states mlir
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/states/states_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} $<TARGET_FILE:dmxrt_shared>)
set_tests_properties(cli.states PROPERTIES TIMEOUT 300)

find_program(DMXC_SYSTEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH) # the one with numpy
dmxc_frontend_test(cli.caches onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/states/caches_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} $<TARGET_FILE:dmxrt_shared>)
set_tests_properties(cli.caches PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
dmxc_frontend_test(cli.strides onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/states/strides_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} $<TARGET_FILE:dmxrt_shared>)
set_tests_properties(cli.strides PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
dmxc_frontend_test(cli.placement "onnx;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/placement_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
dmxc_frontend_test(cli.data-files "onnx;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/data_files_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
dmxc_frontend_test(cli.kernels "onnx;torch;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/kernels_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.kernels PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
if(corsair IN_LIST DMXC_TARGETS)
  dmxc_frontend_test(cli.assembly "mlir"
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/assembly_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  set_tests_properties(cli.assembly PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()
if("aie" IN_LIST DMXC_TARGETS AND "cpu" IN_LIST DMXC_TARGETS)
  dmxc_frontend_test(cli.core-kernels "torch;mlir"
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cores_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  set_tests_properties(cli.core-kernels PROPERTIES SKIP_RETURN_CODE 77)
endif()
dmxc_frontend_test(cli.micro-kernels "onnx;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/micro_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.micro-kernels PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
dmxc_frontend_test(cli.kernel-references "onnx;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/reference_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.kernel-references PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
dmxc_frontend_test(cli.commands "mlir"
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/kernels/commands_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
dmxc_frontend_test(cli.misuse "onnx;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/misuse_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
dmxc_frontend_test(cli.progress "onnx;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/progress_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
dmxc_frontend_test(cli.dynamic-shapes "onnx;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/dynamic_shapes.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.dynamic-operators onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/dynamic_operators.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.product-forms onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/forms/product_forms.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.quantized onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/bytes/quantized.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.code-cache mlir
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/caches/code_cache.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.quantized-convs onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/bytes/quantized_convs.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.rounded-weights onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/rounded_weights.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.short-products onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/short_products.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/zoo)
dmxc_frontend_test(cli.short-attention onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/short_attention.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/zoo)
dmxc_frontend_test(cli.short-convs onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/forms/short_convs.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.block-weights onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/weights/block_weights.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.block-files onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/weights/block_files.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.kept-precision onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/weights/kept_precision.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.byte-products onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/weights/byte_products.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.block-products onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/weights/random_products.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.decoder-logits onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/weights/decoder_logits.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.packed-rows onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/packed_rows.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.sparse-weights onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/sparse/weights.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.sparse-ranges onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/sparse/ranges.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.recurrences onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/recurrences.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.model-words onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/model_words.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.blocked-pixels onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/blocked_pixels.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.contracts onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/contracts_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.levels mlir
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/levels_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
dmxc_frontend_test(cli.decisions "onnx;mlir"
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/decisions_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.decisions PROPERTIES TIMEOUT 900)
dmxc_frontend_test(cli.compare onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/compare_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.compare PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
dmxc_frontend_test(cli.plans mlir
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/plans_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.plans PROPERTIES TIMEOUT 900)
dmxc_frontend_test(cli.strategies onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/strategies_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.control-flow onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/control_flow.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.phase-texts onnx
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/phase_texts.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/zoo)
set_tests_properties(cli.phase-texts cli.data-files cli.placement cli.misuse cli.progress cli.dynamic-shapes cli.dynamic-operators cli.quantized cli.quantized-convs cli.product-forms cli.rounded-weights cli.short-products cli.short-attention cli.packed-rows cli.sparse-weights cli.sparse-ranges cli.recurrences cli.model-words cli.blocked-pixels cli.strategies cli.contracts cli.control-flow PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
dmxc_frontend_test(cli.names onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/names_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.names PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
dmxc_frontend_test(cli.masks "onnx;mlir"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/masks_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/zoo
          ${CMAKE_SOURCE_DIR}/../shared/bench/bar_masks.py)
dmxc_frontend_test(cli.sparsity onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/masks/sparsity_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.biases onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/biases_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/zoo
          ${CMAKE_SOURCE_DIR}/tools/digits/digits.onnx)
dmxc_frontend_test(cli.mask-spellings onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/mask_spellings.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.mask-forms onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/mask_forms.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.softmax-forms onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/masks/softmax_forms.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.run-masks onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/masks/run_masks.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.same-bits onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/masks/same_bits.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
dmxc_frontend_test(cli.same-bits-decoders "onnx;torch"
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/masks/same_bits.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} decoders)
dmxc_frontend_test(cli.fills onnx
  ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/masks/fills_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(cli.masks cli.fills cli.same-bits cli.same-bits-decoders cli.sparsity cli.biases cli.mask-spellings cli.mask-forms cli.softmax-forms cli.run-masks PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
dmxc_frontend_test(cli.large-weights onnx
  ${CMAKE_SOURCE_DIR}/tests/long.sh --changed src/Bundle,src/Support/OutputFile.cpp,runtime/bundle,frontends/onnx/reader/TensorReader.cpp ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/large_weights.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(cli.large-weights PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900 RUN_SERIAL TRUE)

dmxc_frontend_test(cli.schedules-tune "onnx;mlir"
  Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/schedules/tune.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.schedules-tune PROPERTIES TIMEOUT 3600)

# They run behind stops of corsair, cuda and aie.
if(DMXC_TARGETS STREQUAL "cpu;corsair;aie;cuda")
  foreach(part forms hooks damaged)
    dmxc_frontend_test(cli.schedules-${part} mlir
      Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/schedules/${part}.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    set_tests_properties(cli.schedules-${part} PROPERTIES TIMEOUT 600)
  endforeach()
  foreach(part saved includes)
    dmxc_frontend_test(cli.schedules-${part} "onnx;mlir"
      Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/schedules/${part}.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
    set_tests_properties(cli.schedules-${part} PROPERTIES TIMEOUT 600)
  endforeach()
endif()

if("corsair" IN_LIST DMXC_TARGETS)
  dmxc_frontend_test(cli.corsair-graphs mlir
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair_graphs.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
            ${CMAKE_SOURCE_DIR}/../shared/design/bfp_ref.py 0 60)
  dmxc_frontend_test(cli.corsair-stages mlir
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/stages.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  dmxc_frontend_test(cli.corsair-shapes mlir
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair_shapes.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-range onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair_range.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-rotations onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair_rotations.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-stems onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/stems.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-crossings onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/crossings.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-large onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/large.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-model-types onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/model_types.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-bands onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/bands.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-balance onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/balance.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  dmxc_frontend_test(cli.corsair-figures mlir
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/figures.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  dmxc_frontend_test(cli.corsair-loops onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/loops.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.schedules-loops onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/schedules/loops.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-sparse onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/sparse.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-fused onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair/fused.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.corsair-machines mlir
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/corsair_machines.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  set_tests_properties(cli.corsair-figures cli.corsair-graphs cli.corsair-shapes cli.corsair-range cli.corsair-rotations cli.corsair-large cli.corsair-bands cli.corsair-loops cli.corsair-balance cli.corsair-model-types cli.corsair-machines cli.corsair-fused cli.corsair-sparse cli.corsair-stems cli.corsair-crossings cli.schedules-loops PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800)
endif()

if("aie" IN_LIST DMXC_TARGETS)
  dmxc_frontend_test(cli.aie onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/aie_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/zoo)
  dmxc_frontend_test(cli.aie-grid onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/aie/grid.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.aie-floats onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/aie/floats.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.aie-open onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/aie/open.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.aie-narrow onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/aie/narrow.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/zoo)
  dmxc_frontend_test(cli.aie-tilings mlir
    Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/aie/tilings.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  dmxc_frontend_test(cli.aie-convolutions onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/aie/convolutions.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.aie-rows onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/aie/rows.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.aie-shares mlir
    Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/aie/shares.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  dmxc_frontend_test(cli.aie-zeros onnx
    ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/aie/zeros.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  set_tests_properties(cli.aie cli.aie-zeros cli.aie-floats cli.aie-narrow cli.aie-open cli.aie-grid cli.aie-shares cli.aie-tilings cli.aie-convolutions cli.aie-rows PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
endif()
