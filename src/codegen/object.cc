// Relocatable ELF objects that hold data, written by hand: a header, one read-only section per blob, symbols.
// Nothing is copied in memory: the blobs are written from where they lie.
//
//   ELF header | padding, blob | … | symbols | strings | section names | section headers
#include "codegen/link.h"

#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bevel {
namespace {

/// A file that is filled from front to end.
class Output {
public:
  explicit Output(const std::string& path) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) error_ = errno;
  }
  ~Output() {
    if (fd_ >= 0) ::close(fd_);
  }
  uint64_t position() const { return position_; }
  void write(const void* data, size_t size) {
    position_ += size;
    if (error_ == 0 && !writeAll(fd_, {static_cast<const std::byte*>(data), size})) error_ = errno;
  }
  void align(uint64_t alignment) {
    static const char zeros[256] = {};
    for (uint64_t missing = (alignment - position_ % alignment) % alignment; missing > 0;) {
      size_t part = std::min<uint64_t>(missing, sizeof zeros);
      write(zeros, part);
      missing -= part;
    }
  }
  void writeAt(uint64_t offset, const void* data, size_t size) {
    if (error_ == 0 && ::pwrite(fd_, data, size, off_t(offset)) != ssize_t(size))
      error_ = errno ? errno : EIO;
  }
  Status finish() {
    if (error_ == 0) return {};
    return fail(ErrorCode::kIo, std::string("cannot write the model's data: ") + std::strerror(error_));
  }

private:
  int fd_ = -1, error_ = 0;
  uint64_t position_ = 0;
};

/// A string table: text by offset, "" at 0.
struct Strings {
  std::string bytes = std::string(1, '\0');
  uint32_t add(const std::string& text) {
    uint32_t at = uint32_t(bytes.size());
    bytes += text;
    bytes += '\0';
    return at;
  }
};

Elf64_Ehdr fileHeader(const Architecture& architecture, uint64_t sectionHeaders, size_t count) {
  Elf64_Ehdr h{};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64;
  h.e_ident[EI_DATA] = ELFDATA2LSB;
  h.e_ident[EI_VERSION] = EV_CURRENT;
  h.e_type = ET_REL;
  h.e_machine = architecture.elfMachine;
  h.e_flags = architecture.elfFlags;
  h.e_version = EV_CURRENT;
  h.e_shoff = sectionHeaders;
  h.e_ehsize = sizeof(Elf64_Ehdr);
  h.e_shentsize = sizeof(Elf64_Shdr);
  h.e_shnum = uint16_t(count);
  h.e_shstrndx = uint16_t(count - 1);
  return h;
}

} // namespace

Status writeDataObject(const std::vector<DataBlob>& blobs, const Target& target, const std::string& path) {
  constexpr size_t kMaxBlobs = 1000; // section numbers stay far from ELF's reserved ones
  if (blobs.size() > kMaxBlobs) return fail(ErrorCode::kUsage, "too many blobs for one data object");
  if (!target.architecture().elfMachine)
    return fail(ErrorCode::kUnsupported, "there are no ELF objects for " + target.triple);
  Output out(path);
  Elf64_Ehdr blank{};
  out.write(&blank, sizeof blank);
  Strings names, sectionNames;
  std::vector<Elf64_Shdr> sections(1);
  std::vector<Elf64_Sym> symbols(1);
  for (const DataBlob& blob : blobs) {
    out.align(uint64_t(blob.alignment));
    Elf64_Shdr section{};
    section.sh_name = sectionNames.add(".rodata." + blob.symbol);
    section.sh_type = SHT_PROGBITS;
    section.sh_flags = SHF_ALLOC;
    section.sh_offset = out.position();
    for (auto piece : blob.pieces) section.sh_size += piece.size();
    section.sh_addralign = uint64_t(blob.alignment);
    Elf64_Sym symbol{};
    symbol.st_name = names.add(blob.symbol);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbol.st_other = STV_HIDDEN;
    symbol.st_shndx = uint16_t(sections.size());
    symbol.st_size = section.sh_size;
    for (auto piece : blob.pieces) out.write(piece.data(), piece.size());
    sections.push_back(section);
    symbols.push_back(symbol);
  }
  auto add = [&](const char* name, uint32_t type, const void* data, size_t size) -> Elf64_Shdr& {
    out.align(8);
    Elf64_Shdr section{};
    section.sh_name = sectionNames.add(name);
    section.sh_type = type;
    section.sh_offset = out.position();
    section.sh_size = size;
    section.sh_addralign = type == SHT_SYMTAB ? 8 : 1;
    out.write(data, size);
    sections.push_back(section);
    return sections.back();
  };
  add(".note.GNU-stack", SHT_PROGBITS, nullptr, 0); // the stack need not be executable
  Elf64_Shdr& table = add(".symtab", SHT_SYMTAB, symbols.data(), symbols.size() * sizeof(Elf64_Sym));
  table.sh_entsize = sizeof(Elf64_Sym);
  table.sh_link = uint32_t(sections.size()); // .strtab follows
  table.sh_info = 1;                         // the first global symbol
  add(".strtab", SHT_STRTAB, names.bytes.data(), names.bytes.size());
  Strings copy = sectionNames;
  copy.add(".shstrtab");
  add(".shstrtab", SHT_STRTAB, copy.bytes.data(), copy.bytes.size());
  out.align(8);
  uint64_t headers = out.position();
  out.write(sections.data(), sections.size() * sizeof(Elf64_Shdr));
  Elf64_Ehdr header = fileHeader(target.architecture(), headers, sections.size());
  out.writeAt(0, &header, sizeof header);
  return out.finish();
}

} // namespace bevel
