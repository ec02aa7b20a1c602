// Native libraries: objects by LLVM, data objects with image and weights, linked in process, and the C
// header.
#include "driver/compile.h"

#include "base/file.h"
#include "codegen/link.h"
#include "ir/build.h"

#include <cctype>
#include <filesystem>
#include <fmt/format.h>

namespace bevel {
namespace {

namespace fs = std::filesystem;

// "my-model.v2.so" → "my_model_v2".
std::string identifierOf(const std::string& path) {
  std::string stem = fs::path(path).stem().string(), out;
  for (char c : stem) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "model_" + out;
  return out;
}

std::string upper(std::string s) {
  for (char& c : s) c = char(std::toupper(static_cast<unsigned char>(c)));
  return s;
}

std::string typeText(const Type& type) {
  const auto* t = type.as<TensorTypeNode>();
  if (!t) return "a list, an optional or another value";
  if (!t->known) return t->dtype.str() + (t->ndim < 0 ? " of any rank" : fmt::format(" of rank {}", t->ndim));
  std::string out;
  for (const Expr& d : t->shape) {
    auto c = asConst(d);
    const auto* v = d.as<VarNode>();
    out += (out.empty() ? "" : ", ") + (c ? std::to_string(*c) : v ? v->name : std::string("?"));
  }
  return t->dtype.str() + "[" + out + "]";
}

// Text that may stand in a C comment.
std::string comment(std::string s) {
  for (size_t i = 0; i < s.size(); ++i)
    if (s[i] == '\n' || (s[i] == '/' && i && s[i - 1] == '*') || (s[i] == '*' && i && s[i - 1] == '/'))
      s[i] = ' ';
  return s;
}

std::string headerText(const Compiled& c, const std::string& name, const std::string& file) {
  std::string out = fmt::format("/* {}: a model compiled by Bevel for {}.\n *\n", file, c.target.str());
  for (size_t i = 0; i < c.module->functions.size(); ++i) {
    const auto* f = c.module->functions[i].as<FunctionNode>();
    if (!f) continue;
    for (size_t k = 0; k < f->params.size(); ++k)
      out += comment(fmt::format(" * input {}: {}, {}", k,
                                 listedName(f->attrs, "input_names", k, f->params[k]->name),
                                 typeText(f->params[k]->type))) +
             "\n";
    Type result = f->body->body->type;
    const auto* tuple = result.as<TupleTypeNode>();
    for (size_t k = 0; k < numResults(result); ++k)
      out += comment(fmt::format(" * output {}: {}, {}", k,
                                 listedName(f->attrs, "output_names", k, fmt::format("output_{}", k)),
                                 typeText(tuple ? tuple->fields_[k] : result))) +
             "\n";
    break;
  }
  std::string guard = "BEVEL_MODEL_" + upper(name) + "_H_";
  out += fmt::format(" *\n * Link with {} and the run time (-lbevel_runtime). */\n#ifndef {}\n#define "
                     "{}\n\n#include <bevel/runtime.h>\n\n",
                     file, guard, guard);
  out += fmt::format("#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\nextern const bevel_image {}_image;\n\n",
                     name);
  out += "/* Makes the model ready; bevel_model_release when done. Returns a bevel_status. */\n";
  out += fmt::format("static inline int32_t {0}_load(bevel_model** model) {{ return "
                     "bevel_model_from_image(&{0}_image, NULL, model); }}\n\n",
                     name);
  out += "#ifdef __cplusplus\n}\n#endif\n#endif\n";
  return out;
}

} // namespace

Status writeLibrary(Compiled& c, const std::string& path) {
  std::string name = identifierOf(path);
  BEVEL_TRY(std::string library, replaceablePath(path));
  CompileOptions options;
  options.threads = c.options.threads;
  options.useCache = c.options.useCache;
  options.debugInfo = c.options.debugInfo;
  if (c.options.progress) c.options.progress("machine code", 0, c.program.kernels.size());
  LinkJob job;
  if (!c.program.kernels.empty()) {
    BEVEL_TRY(job.objects, compileObjects(c.program.kernels, c.target, options, &c.kernels));
  }
  if (c.options.progress) c.options.progress("linking", 0, 0);
  ImageBuilder& image = *c.program.image;
  std::vector<uint64_t> block = image.finish();
  std::string imageSymbol = name + "_image_data", weightsSymbol = name + "_weights_data";
  std::vector<DataBlob> blobs = {{imageSymbol, {std::as_bytes(std::span(block))}}};
  if (image.weightsSize()) blobs.push_back({weightsSymbol, image.weightPieces()});
  BEVEL_TRY(
      Descriptor data,
      namelessFile(fs::path(library).parent_path().empty() ? "." : fs::path(library).parent_path().string()));
  auto named = [&](Status status) { return status ? status : fail(std::move(status.error()).in(path)); };
  BEVEL_CHECK(named(writeDataObject(blobs, c.target, data.path())));
  std::string headerOf = headerText(c, name, fs::path(path).filename().string());
  c.program.keep.clear(); // the linker maps the file: weights in memory are not needed any more
  c.module = nullptr;
  ImageTable table;
  table.imageSymbol = imageSymbol;
  table.imageSize = block.size() * 8;
  for (const KernelSource& k : c.program.kernels) table.kernels.push_back(k.name);
  if (image.weightsSize()) table.weightsSymbol = weightsSymbol, table.weightsSize = image.weightsSize();
  for (const std::string& symbol : {std::string("bevel_image_v1"), name + "_image"}) {
    table.symbol = symbol;
    BEVEL_TRY(std::string object, imageTableObject(table, c.target));
    job.objects.push_back(std::move(object));
    job.exports.push_back(symbol);
  }
  job.files.push_back(data.path());
  job.soname = fs::path(path).filename().string();
  BEVEL_CHECK(named(linkSharedLibrary(job, c.target, library)));
  std::string header = fs::path(path).replace_extension(".h").string();
  return writeFile(header, std::string_view(headerOf));
}

} // namespace bevel
