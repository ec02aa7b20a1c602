// Linking by lld in this process, and the table object of a model library.
#include "codegen/link.h"
#include "codegen/llvm_passes.h"

#include "base/file.h"
#include "runtime/abi/image.h"

#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/raw_ostream.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

static_assert(offsetof(bevel_image, image) == 8 && offsetof(bevel_image, kernels) == 24 &&
              offsetof(bevel_image, weights_file) == 48 && sizeof(bevel_image) == 56);

namespace bevel {
namespace {

Status append(const Descriptor& file, std::string_view bytes) {
  if (!writeAll(file.get(), std::as_bytes(std::span(bytes))))
    return fail(ErrorCode::kIo, std::string("cannot write a file in memory: ") + std::strerror(errno));
  return {};
}

/// Bytes as a file in memory, for a linker that reads files.
Result<Descriptor> memoryFile(std::string_view bytes) {
  Descriptor file(::memfd_create("bevel-link", MFD_CLOEXEC));
  if (!file)
    return fail(ErrorCode::kIo, std::string("cannot create a file in memory: ") + std::strerror(errno));
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

Status runLinker(const std::vector<std::string>& arguments) {
  static std::mutex oneAtATime; // lld keeps global state
  std::lock_guard lock(oneAtATime);
  std::vector<const char*> raw;
  for (const std::string& a : arguments) raw.push_back(a.c_str());
  std::string text;
  llvm::raw_string_ostream messages(text);
  bool ok = lld::elf::link(raw, messages, messages, /*exitEarly=*/false, /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  if (ok) return {};
  return fail(Error(ErrorCode::kInternal, "linking failed").note(text));
}

} // namespace

Status linkSharedLibrary(const LinkJob& job, const Target& target, const std::string& output) {
  const char* emulation = target.architecture().linkEmulation;
  if (!emulation)
    return fail(Error(ErrorCode::kUnsupported, "shared libraries for " + target.triple + " cannot be linked")
                    .help("the table src/target/targets.def has no linker emulation for it"));
  std::string temporary = output + ".link" + std::to_string(::getpid());
  std::vector<std::string> arguments = {
      "ld.lld",  "-shared", "--hash-style=gnu", "--build-id=none", "-z", "noexecstack", "-z", "relro", "-o",
      temporary, "-m",      emulation};
  if (!job.soname.empty()) arguments.insert(arguments.end(), {"-soname", job.soname});
  if (!job.runPath.empty()) arguments.insert(arguments.end(), {"--enable-new-dtags", "-rpath", job.runPath});
  if (!job.allowUndefined) arguments.push_back("-z"), arguments.push_back("defs");
  if (job.strip) arguments.push_back("--strip-all");
  BEVEL_TRY(Descriptor script, memoryFile(versionScript(job.exports)));
  arguments.push_back("--version-script=" + script.path());
  BEVEL_TRY(Descriptor archive, archiveOf(job.objects));
  arguments.insert(arguments.end(), {"--whole-archive", archive.path(), "--no-whole-archive"});
  for (const std::string& file : job.files) arguments.push_back(file);
  if (Status linked = runLinker(arguments); !linked) {
    ::unlink(temporary.c_str());
    return linked;
  }
  if (::rename(temporary.c_str(), output.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return fail(ErrorCode::kIo, "cannot write " + output);
  }
  return {};
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
