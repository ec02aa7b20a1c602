// Debug information: gdb and perf show a kernel by its name and ONNX nodes, and its lines are those of the
// printed program ("<kernel>.bevel").
#include "codegen/llvm_emit.h"

namespace bevel::codegen {

void KernelEmitter::beginDebug(llvm::Function* f, const std::string& display) {
  if (!di_) {
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
  auto it = lines_.find(node.get());
  llvm::DebugLoc current = builder_.getCurrentDebugLocation();
  bool sameScope = current && current->getScope() == scope;
  if (it == lines_.end() && sameScope) return;
  unsigned line = it != lines_.end() ? unsigned(it->second) : 1;
  builder_.SetCurrentDebugLocation(llvm::DILocation::get(context_, line, 0, scope));
}

} // namespace bevel::codegen
