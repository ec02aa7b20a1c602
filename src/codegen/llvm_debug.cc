// Debug information: gdb and perf show a kernel by its name and ONNX nodes, and its lines are those of the
// printed program ("<kernel>.bevel").
#include "codegen/llvm_emit.h"

#include "ir/printer.h"

#include <algorithm>

namespace bevel::codegen {

/// The line of every node in the text that print() gives for the function.
void KernelEmitter::numberLines() {
  std::unordered_map<const Object*, PrintedRange> ranges;
  PrintOptions options;
  options.ranges = &ranges;
  std::string text = print(source_.function, options);
  std::vector<size_t> ends; // of lines
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') ends.push_back(i);
  for (const auto& [node, range] : ranges) {
    auto line = std::lower_bound(ends.begin(), ends.end(), range.begin) - ends.begin();
    lines_[node] = int(line) + 1;
  }
}

void KernelEmitter::beginDebug(llvm::Function* f, const std::string& display) {
  if (!di_) {
    numberLines();
    di_.emplace(module_);
    diFile_ = di_->createFile(source_.name + ".bevel", ".");
    di_->createCompileUnit(llvm::dwarf::DW_LANG_C, diFile_, "bevel", true, "", 0, "",
                           llvm::DICompileUnit::LineTablesOnly);
    module_.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    module_.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
  }
  std::string name = display;
  if (f_.origin && !f_.origin->nodes.empty()) {
    std::string nodes;
    for (const std::string& n : f_.origin->nodes) nodes += (nodes.empty() ? "" : ", ") + n;
    name += " [" + nodes + "]";
  }
  auto* type = di_->createSubroutineType(di_->getOrCreateTypeArray({}));
  auto flags = llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized;
  f->setSubprogram(
      di_->createFunction(diFile_, name, f->getName(), diFile_, 1, type, 1, llvm::DINode::FlagZero, flags));
}

/// Instructions made from here on belong to the node's line; nodes without a line keep the last one.
void KernelEmitter::locate(const NodeRef& node) {
  llvm::DISubprogram* scope = debug_ && frame_.function ? frame_.function->getSubprogram() : nullptr;
  if (!scope) return;
  auto it = lines_.find(node.object());
  llvm::DebugLoc current = builder_.getCurrentDebugLocation();
  bool sameScope = current && current->getScope() == scope;
  if (it == lines_.end() && sameScope) return;
  unsigned line = it != lines_.end() ? unsigned(it->second) : 1;
  builder_.SetCurrentDebugLocation(llvm::DILocation::get(context_, line, 0, scope));
}

} // namespace bevel::codegen
