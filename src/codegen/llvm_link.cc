// Linking by lld in this process, and the table object of a model library.
#include "codegen/link.h"
#include "codegen/llvm_passes.h"

#include "base/file.h"
#include "runtime/abi/image.h"

#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/raw_ostream.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

static_assert(offsetof(bevel_image, image) == 8 && offsetof(bevel_image, kernels) == 24 &&
              offsetof(bevel_image, weights_file) == 48 && sizeof(bevel_image) == 56);

namespace bevel {
namespace {

tl::unexpected<Error> memoryError() {
  return fail(ErrorCode::kIo, std::string("cannot write a file in memory: ") + std::strerror(errno));
}

Status append(const Descriptor& file, std::string_view bytes) {
  if (!writeAll(file.get(), std::as_bytes(std::span(bytes)))) return memoryError();
  return {};
}

/// Bytes as a file in memory, for a linker that reads files.
Result<Descriptor> memoryFile(std::string_view bytes) {
  Descriptor file(::memfd_create("bevel-link", MFD_CLOEXEC));
  if (!file) return memoryError();
  BEVEL_CHECK(append(file, bytes));
  return file;
}

/// The objects as one `ar` archive: a file for each would run into the limit on open files.
Result<Descriptor> archiveOf(const std::vector<std::string>& objects) {
  BEVEL_TRY(Descriptor file, memoryFile("!<arch>\n"));
  for (size_t i = 0; i < objects.size(); ++i) {
    std::string name = std::to_string(i) + ".o/";
    char header[61]; // name, time, owner, group, mode, size
    std::snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name.c_str(), 0, 0, 0, "644",
                  objects[i].size());
    BEVEL_CHECK(append(file, header));
    BEVEL_CHECK(append(file, objects[i]));
    if (objects[i].size() % 2) BEVEL_CHECK(append(file, "\n"));
  }
  return file;
}

/// "{ global: a; b; local: *; };"
std::string versionScript(const std::vector<std::string>& exports) {
  std::string out = "{\n";
  if (!exports.empty()) out += " global:\n";
  for (const std::string& e : exports) out += "  \"" + e + "\";\n";
  return out + " local: *;\n};\n";
}

/// Links a shared library with these arguments and writes it to an open file; errno tells why it cannot. The linker
/// itself writes to a pipe: a full disk would end the process there.
Result<bool> runLinker(std::vector<std::string> arguments, const Target& target, int output) {
  const char* emulation = target.architecture().linkEmulation;
  if (!emulation)
    return fail(Error(ErrorCode::kUnsupported, "shared libraries for " + target.triple + " cannot be linked")
                    .help("the table src/target/targets.def has no linker emulation for it"));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  Descriptor from(ends[0]), to(ends[1]);
  int problem = 0;
  std::thread copy([&] {
    std::vector<std::byte> piece(1 << 16);
    for (ssize_t n; (n = ::read(from.get(), piece.data(), piece.size())) > 0 || (n < 0 && errno == EINTR);)
      if (n > 0 && !problem && !writeAll(output, std::span(piece).first(size_t(n)))) problem = errno;
  });
  arguments.insert(arguments.begin(), {"ld.lld", "-shared", "--hash-style=gnu", "--build-id=none", "-z",
                                       "noexecstack", "-o", to.path(), "-m", emulation});
  std::vector<const char*> raw;
  for (const std::string& a : arguments) raw.push_back(a.c_str());
  std::string text;
  llvm::raw_string_ostream messages(text);
  static std::mutex oneAtATime; // lld keeps global state
  std::unique_lock lock(oneAtATime);
  bool ok = lld::elf::link(raw, messages, messages, /*exitEarly=*/false, /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  lock.unlock();
  to = {};
  copy.join();
  if (!ok) return fail(Error(ErrorCode::kInternal, "linking failed").note(text));
  errno = problem;
  return !problem;
}

/// Functions of the C library's maths that the objects call, without duplicates.
Result<std::set<std::string>> mathsCalls(const std::vector<std::string>& objects) {
  static const std::set<std::string_view> kNames = {
      "acos",     "acosh", "asin", "asinh",     "atan",      "atan2",  "atanh",  "cbrt",  "ceil",
      "copysign", "cos",   "cosh", "erf",       "erfc",      "exp",    "exp10",  "exp2",  "expm1",
      "fabs",     "floor", "fma",  "fmax",      "fmin",      "fmod",   "hypot",  "ldexp", "log",
      "log10",    "log1p", "log2", "nearbyint", "nextafter", "pow",    "rint",   "round", "roundeven",
      "sin",      "sinh",  "sqrt", "tan",       "tanh",      "tgamma", "lgamma", "trunc"};
  std::set<std::string> out;
  for (const std::string& bytes : objects) {
    auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
    if (!object) return fail(ErrorCode::kInternal, "an object file: " + llvm::toString(object.takeError()));
    for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
      auto flags = symbol.getFlags();
      auto name = symbol.getName();
      if (!flags || !name) {
        llvm::consumeError(flags.takeError());
        llvm::consumeError(name.takeError());
        continue;
      }
      std::string_view base = *name;
      if (!(*flags & llvm::object::SymbolRef::SF_Undefined)) continue;
      if (kNames.contains(base) || (base.ends_with('f') && kNames.contains(base.substr(0, base.size() - 1))))
        out.emplace(base);
    }
  }
  return out;
}

/// A library that stands for libm while linking, so that the output names libm.so.6 among what it needs; none where
/// no object calls it. The target's own libm need not be on this machine.
Result<Descriptor> mathsLibrary(const std::vector<std::string>& objects, const Target& target) {
  BEVEL_TRY(std::set<std::string> calls, mathsCalls(objects));
  if (calls.empty()) return Descriptor();
  BEVEL_TRY(std::unique_ptr<llvm::TargetMachine> machine, codegen::makeMachine(target));
  llvm::LLVMContext context;
  llvm::Module module("libm", context);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
  for (const std::string& name : calls) {
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
    auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    llvm::ReturnInst::Create(context, llvm::BasicBlock::Create(context, "", f));
  }
  BEVEL_TRY(std::string object, codegen::emitMachineCode(module, *machine, false));
  BEVEL_TRY(Descriptor input, memoryFile(object));
  BEVEL_TRY(Descriptor library, memoryFile(""));
  BEVEL_TRY(bool written, runLinker({"-soname", "libm.so.6", input.path()}, target, library.get()));
  if (!written) return memoryError();
  return library;
}

} // namespace

Status linkSharedLibrary(const LinkJob& job, const Target& target, const std::string& output) {
  std::vector<std::string> arguments = {"-z", "relro"};
  if (!job.soname.empty()) arguments.insert(arguments.end(), {"-soname", job.soname});
  if (!job.runPath.empty()) arguments.insert(arguments.end(), {"--enable-new-dtags", "-rpath", job.runPath});
  if (!job.allowUndefined) arguments.push_back("-z"), arguments.push_back("defs");
  if (job.strip) arguments.push_back("--strip-all");
  BEVEL_TRY(Descriptor script, memoryFile(versionScript(job.exports)));
  arguments.push_back("--version-script=" + script.path());
  BEVEL_TRY(Descriptor archive, archiveOf(job.objects));
  arguments.insert(arguments.end(), {"--whole-archive", archive.path(), "--no-whole-archive"});
  BEVEL_TRY(Descriptor maths, mathsLibrary(job.objects, target));
  if (maths) arguments.push_back(maths.path());
  for (const std::string& path : job.files) arguments.push_back(path);
  Status linked;
  Status written = replaceFile(AT_FDCWD, output, 0777, [&](int file) {
    auto result = runLinker(std::move(arguments), target, file);
    if (!result) linked = fail(std::move(result.error()));
    return result.value_or(false);
  });
  return linked ? written : linked;
}

Result<std::string> imageTableObject(const ImageTable& table, const Target& target) {
  BEVEL_TRY(std::unique_ptr<llvm::TargetMachine> machine, codegen::makeMachine(target));
  llvm::LLVMContext context;
  llvm::Module module("image", context);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
  auto* ptr = llvm::PointerType::get(context, 0);
  auto *i8 = llvm::Type::getInt8Ty(context), *i32 = llvm::Type::getInt32Ty(context),
       *i64 = llvm::Type::getInt64Ty(context);
  auto define = [&](const std::string& name, llvm::Constant* value, bool exported) -> llvm::Constant* {
    auto* g = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(name, value->getType()));
    g->setInitializer(value);
    g->setConstant(true);
    if (!exported) g->setLinkage(llvm::GlobalValue::InternalLinkage);
    return g;
  };
  auto external = [&](const std::string& symbol) -> llvm::Constant* {
    if (symbol.empty()) return llvm::ConstantPointerNull::get(ptr);
    return llvm::cast<llvm::GlobalVariable>(
        module.getOrInsertGlobal(symbol, i8)); // the linker's export list hides it
  };
  std::vector<llvm::Constant*> kernels;
  for (const std::string& k : table.kernels) kernels.push_back(external(k));
  llvm::Constant* array = llvm::ConstantArray::get(llvm::ArrayType::get(ptr, kernels.size()), kernels);
  llvm::Constant* file = llvm::ConstantPointerNull::get(ptr);
  if (!table.weightsFile.empty())
    file =
        define("bevel.weights_file", llvm::ConstantDataArray::getString(context, table.weightsFile), false);
  auto number = [&](llvm::Type* t, uint64_t v) { return llvm::ConstantInt::get(t, v); };
  llvm::Constant* fields[] = {number(i32, sizeof(bevel_image)),      number(i32, kernels.size()),
                              external(table.imageSymbol),           number(i64, table.imageSize),
                              define("bevel.kernels", array, false), external(table.weightsSymbol),
                              number(i64, table.weightsSize),        file};
  define(table.symbol, llvm::ConstantStruct::getAnon(context, fields), true);
  return codegen::emitMachineCode(module, *machine, false);
}

} // namespace bevel
