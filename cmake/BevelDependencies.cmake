# Libraries that Bevel is built with; docs/dependencies.md says what each is for. Debian 12 packages, installed by ./dev.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19)
find_package(LLD REQUIRED CONFIG HINTS /usr/lib/llvm-19)

# Header-only libraries without a CMake package of their own, or of which only the headers are used.
foreach(header protozero/pbf_reader.hpp nlohmann/json.hpp CLI/CLI.hpp dlpack/dlpack.h)
  string(MAKE_C_IDENTIFIER "BEVEL_HAVE_${header}" found)
  find_path(${found} ${header})
  if(NOT ${found})
    message(FATAL_ERROR "${header} is missing: run ./dev deps")
  endif()
  mark_as_advanced(${found})
endforeach()
