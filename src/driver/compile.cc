// See compile.h.
#include "driver/compile.h"

#include "base/stack.h"
#include "codegen/cache.h"
#include "driver/check_names.h"
#include "driver/commands.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "import/onnx.h"
#include "ir/constants.h"
#include "ir/verify.h"
#include "ops/ops.h"

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <new>

namespace bevel {
namespace {

void tell(const BuildOptions& o, const std::string& stage, size_t done = 0, size_t total = 0) {
  if (o.progress) o.progress(stage, done, total);
}

Module withFirst(const Module& module, const std::string& main) {
  GraphExpr f = main.empty() ? nullptr : module->find(main);
  if (!f) return module;
  auto out = make<ModuleNode>();
  out->attrs = module->attrs;
  out->names.push_back(make<const GlobalVarNode>(main, f->type));
  out->functions.push_back(f);
  for (size_t i = 0; i < module->names.size(); ++i) {
    if (module->names[i]->name == main) continue;
    out->names.push_back(module->names[i]);
    out->functions.push_back(module->functions[i]);
  }
  return Module(out);
}

Result<Compiled> compileHere(const Module& module, const BuildOptions& o, const std::string& main) {
  double begin = now();
  std::vector<PassTiming> timings;
  PipelineContext context(o);
  PassOptions run = passOptions(o);
  run.timings = &timings;
  const char* check =
      std::getenv("BEVEL_CHECK"); // set by tests: every stage is verified, printed, parsed and compared
  run.verifyEach = run.roundTripEach = check && std::string_view(check) == "1";
  BEVEL_TRY(Module lowered, runPasses(compilePasses(context), withFirst(module, main), run));
  BEVEL_CHECK(context.decisions.checkAnswers());
  BEVEL_TRY(Compiled out, emitModule(lowered, o));
  out.timings.insert(out.timings.begin(), timings.begin(), timings.end());
  out.schedules = std::move(context.schedules);
  out.decisions = std::move(context.decisions.trace);
  out.notes = std::move(context.notes);
  out.seconds = now() - begin;
  return out;
}

// A text module with all types, verified.
Result<Module> readText(const std::string& path) {
  ParseOptions options;
  options.signatureOf = [](std::string_view name) -> std::optional<OpSignature> {
    const Op* op = findOp(name);
    if (!op) return std::nullopt;
    OpSignature s;
    for (const OpInput& input : op->inputs) s.inputs.push_back(input.name);
    for (const OpAttr& a : op->attrs)
      s.attrs.push_back({a.name, a.kind == AttrKind::kInts || a.kind == AttrKind::kFloats});
    s.variadic = !op->inputs.empty() && op->inputs.back().kind == InputKind::kVariadic;
    return s;
  };
  BEVEL_TRY(Module module, readModule(path, std::move(options)));
  auto typed = inferTypes(module);
  Status ok = typed ? verify(*typed) : fail(std::move(typed.error()));
  if (ok) return typed;
  Error error = withSource(std::move(ok.error()));
  if (error.file.empty()) error.file = path;
  return fail(std::move(error));
}

} // namespace

Result<Compiled> emitModule(const Module& module, const BuildOptions& o) {
  Compiled out;
  out.module = module;
  out.target = o.target;
  out.options = o;
  double start = now();
  BEVEL_TRY(out.program, emitVm(module, o.target));
  out.timings.push_back({"emit_vm", now() - start, true});
  return out;
}

Result<Compiled> compileModule(const Module& module, const BuildOptions& options, const std::string& main) {
  registerOps();
  // Schedules are lowered only once as a rule: where the whole fails, each is checked, so that the next simpler one is taken.
  BuildOptions unchecked = options;
  unchecked.checkSchedules = false;
  return onLargeStack([&] {
    auto out = compileHere(module, unchecked, main);
    bool again = !out && options.optimize && !strictSchedules();
    return again ? compileHere(module, options, main) : std::move(out);
  });
}

Result<Module> readModel(const std::string& path, const BuildOptions& o) {
  registerOps();
  tell(o, "reading " + path);
  BEVEL_TRY(Module out, onLargeStack([&]() -> Result<Module> {
              if (!isOnnxPath(path)) return readText(path);
              BEVEL_TRY(OnnxModel model, importOnnx(path, {o.dims, o.shapes, o.overridden}));
              return model.module;
            }));
  BEVEL_CHECK(checkNames(o, path, out));
  return out;
}

Result<Compiled> compileFile(const std::string& path, const BuildOptions& options) {
  BEVEL_TRY(Module module, readModel(path, options));
  return compileModule(module, options, module->find("main") ? "main" : "");
}

Error runtimeError(int32_t status) {
  ErrorCode code = ErrorCode::kInternal;
  // Memory runs out because a model or its inputs ask for too much.
  if (status == BEVEL_ERROR_REFUSED || status == BEVEL_ERROR_MISSING || status == BEVEL_ERROR_MEMORY)
    code = ErrorCode::kInvalid;
  if (status == BEVEL_ERROR_USAGE) code = ErrorCode::kUsage;
  return Error(code, bevel_last_error());
}

Status runtimeStatus(int32_t status) {
  return status ? Status(fail(runtimeError(status))) : Status();
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Executable::~Executable() {
  if (model_) bevel_model_release(model_);
  if (weights_) ::operator delete(weights_, std::align_val_t(64));
}

Result<std::shared_ptr<Executable>> load(Compiled& compiled) {
  double begin = now();
  CompileOptions options;
  options.threads = compiled.options.threads;
  options.useCache = compiled.options.useCache;
  options.debugInfo = compiled.options.debugInfo;
  tell(compiled.options, "machine code", 0, compiled.program.kernels.size());
  std::shared_ptr<Executable> out(new Executable());
  if (!compiled.program.kernels.empty()) {
    BEVEL_TRY(out->code_, compileJit(compiled.program.kernels, compiled.target, options, &compiled.kernels));
  }
  for (const KernelSource& k : compiled.program.kernels) {
    out->entries_.push_back(out->code_->kernel(k.name));
    if (!out->entries_.back()) return fail(ErrorCode::kInternal, "kernel '" + k.name + "' was not linked");
  }
  ImageBuilder& image = *compiled.program.image;
  out->block_ = image.finish();
  uint64_t bytes = image.weightsSize();
  if (bytes) {
    out->weights_ = ::operator new(bytes, std::align_val_t(64), std::nothrow);
    if (!out->weights_) return fail(ErrorCode::kIo, fmt::format("no memory for {} bytes of weights", bytes));
    image.copyWeights(out->weights_);
  }
  out->image_ = {sizeof(bevel_image),
                 uint32_t(out->entries_.size()),
                 out->block_.data(),
                 out->block_.size() * 8,
                 out->entries_.data(),
                 out->weights_,
                 bytes,
                 nullptr};
  BEVEL_CHECK(runtimeStatus(bevel_model_from_image(&out->image_, nullptr, &out->model_)));
  compiled.program.keep.clear(); // the weights are in the block now
  compiled.module = nullptr;
  compiled.seconds += now() - begin;
  return out;
}

} // namespace bevel
