# How a layer, the run time and the tool become targets. A layer without sources yet is an INTERFACE library that only
# passes its dependencies on, so the dependency list in CMakeLists.txt is complete from the start.

set(BEVEL_LAYERS "")

# Headers that nearly every file above `ir` reads, parsed once: a file then compiles three times as fast. Files still
# include what they use; the structure test reads the text.
function(bevel_precompiled_headers)
  file(WRITE "${CMAKE_BINARY_DIR}/pch.cc.in" "")
  configure_file("${CMAKE_BINARY_DIR}/pch.cc.in" "${CMAKE_BINARY_DIR}/pch.cc" COPYONLY)
  add_library(bevel_pch OBJECT "${CMAKE_BINARY_DIR}/pch.cc")
  target_link_libraries(bevel_pch PRIVATE bevel_flags fmt::fmt tl::expected)
  target_precompile_headers(bevel_pch PRIVATE
    <algorithm> <cmath> <map> <memory> <optional> <set> <string> <unordered_map> <unordered_set> <vector>
    "${CMAKE_SOURCE_DIR}/src/base/function_ref.h" "${CMAKE_SOURCE_DIR}/src/base/result.h"
    "${CMAKE_SOURCE_DIR}/src/ir/build.h" "${CMAKE_SOURCE_DIR}/src/ir/structural.h")
endfunction()

# bevel_layer(NAME [DEPS layer...] [RUNTIME]): libbevel_NAME.a from src/NAME.
function(bevel_layer name)
  cmake_parse_arguments(arg "RUNTIME" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.cc" "${CMAKE_SOURCE_DIR}/src/${name}/*/*.cc")
  list(FILTER sources EXCLUDE REGEX "/src/driver/main\\.cc$")
  if(sources)
    add_library(bevel_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(bevel_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(bevel_${name} ${scope} bevel_flags)
  if(sources AND NOT name MATCHES "^(base|target|ir|codegen)$")
    target_precompile_headers(bevel_${name} REUSE_FROM bevel_pch)
  endif()
  foreach(dep IN LISTS arg_DEPS)
    target_link_libraries(bevel_${name} ${scope} bevel_${dep})
  endforeach()
  if(arg_RUNTIME AND TARGET bevel_runtime_static)
    target_link_libraries(bevel_${name} ${scope} bevel_runtime_static)
  endif()
  string(TOUPPER ${name} upper)
  set(BEVEL_${upper}_SCOPE ${scope} PARENT_SCOPE)
  list(LENGTH sources count)
  set_property(GLOBAL APPEND PROPERTY BEVEL_LAYER_COUNTS "${name}:${count}")
  set(BEVEL_LAYERS ${BEVEL_LAYERS} ${name} PARENT_SCOPE)
endfunction()

# LLVM (the shared library) and lld (static, calls into that library) for the one layer that emits machine code.
function(bevel_use_llvm name)
  string(TOUPPER ${name} upper)
  set(scope ${BEVEL_${upper}_SCOPE})
  if(scope STREQUAL "PUBLIC")
    separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
    target_compile_definitions(bevel_${name} PRIVATE ${definitions})
    target_include_directories(bevel_${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    # LLVM's headers take ten seconds a file: its users are compiled as two files, the emitter and the rest.
    set_target_properties(bevel_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    foreach(part function memory expr cast call debug)
      set_source_files_properties("${CMAKE_SOURCE_DIR}/src/${name}/llvm_${part}.cc" PROPERTIES UNITY_GROUP llvm_emit)
    endforeach()
    foreach(part passes compile jit link cache_key)
      set_source_files_properties("${CMAKE_SOURCE_DIR}/src/${name}/llvm_${part}.cc" PROPERTIES UNITY_GROUP llvm_back)
    endforeach()
  endif()
  target_link_libraries(bevel_${name} ${scope} lldELF lldCommon LLVM)
endfunction()

# The command line library takes twenty seconds a file: the commands are compiled as one.
function(bevel_use_cli name)
  set_target_properties(bevel_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  file(GLOB commands CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/cmd_*.cc" "${CMAKE_SOURCE_DIR}/src/${name}/flags.cc")
  set_source_files_properties(${commands} PROPERTIES UNITY_GROUP commands)
endfunction()

# The run time: small, free of LLVM and fmt, static and shared from the same objects.
function(bevel_runtime)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/runtime/*.cc" "${CMAKE_SOURCE_DIR}/src/runtime/*/*.cc")
  list(LENGTH sources count)
  set_property(GLOBAL APPEND PROPERTY BEVEL_LAYER_COUNTS "runtime:${count}")
  if(NOT sources)
    return()
  endif()
  add_library(bevel_runtime_objects OBJECT ${sources})
  target_link_libraries(bevel_runtime_objects PRIVATE bevel_flags)
  target_include_directories(bevel_runtime_objects PUBLIC "${CMAKE_SOURCE_DIR}/include")
  # The virtual machine's calls take half the time at -O2; the operators of the run time are rarely called and many.
  file(GLOB operators CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/runtime/ops/*.cc")
  set_source_files_properties(${operators} PROPERTIES COMPILE_OPTIONS -Os)
  target_compile_options(bevel_runtime_objects PRIVATE
    -O2 -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections -fdata-sections)
  add_library(bevel_runtime_static STATIC $<TARGET_OBJECTS:bevel_runtime_objects>)
  add_library(bevel_runtime_shared SHARED $<TARGET_OBJECTS:bevel_runtime_objects>)
  foreach(library bevel_runtime_static bevel_runtime_shared)
    set_target_properties(${library} PROPERTIES OUTPUT_NAME bevel_runtime LINKER_LANGUAGE CXX)
    target_include_directories(${library} PUBLIC "${CMAKE_SOURCE_DIR}/include")
    target_link_libraries(${library} PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)
  endforeach()
  target_link_options(bevel_runtime_shared PRIVATE -Wl,--gc-sections -Wl,--as-needed)
endfunction()

# build/bevel, once the driver has a main.
function(bevel_tool)
  if(NOT EXISTS "${CMAKE_SOURCE_DIR}/src/driver/main.cc")
    return()
  endif()
  add_executable(bevel "${CMAKE_SOURCE_DIR}/src/driver/main.cc")
  target_link_libraries(bevel PRIVATE bevel_driver)
  set_target_properties(bevel PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}" INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()

# What a program needs that uses compiled models, and the tool.
function(bevel_install)
  string(MAKE_C_IDENTIFIER "BEVEL_HAVE_dlpack/dlpack.h" dlpack)
  install(TARGETS bevel bevel_runtime_shared bevel_runtime_static
    ARCHIVE DESTINATION lib LIBRARY DESTINATION lib RUNTIME DESTINATION bin)
  install(FILES "${CMAKE_SOURCE_DIR}/include/bevel/runtime.h" DESTINATION "include/bevel")
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/src/runtime/abi" DESTINATION "include/bevel")
  install(FILES "${${dlpack}}/dlpack/dlpack.h" DESTINATION "include/dlpack")
endfunction()

function(bevel_report_layers)
  get_property(counts GLOBAL PROPERTY BEVEL_LAYER_COUNTS)
  list(JOIN counts " " text)
  message(STATUS "Source files: ${text}")
endfunction()
