// Debug information: gdb and perf show a kernel by its name and ONNX nodes, the code of each node of a fused
// kernel as inlined into it, and lines of the printed program ("<kernel>.bevel").
//
//   #0  /layer1/Mul () at scale.bevel:6
//   #1  scale [/layer1/Mul] () at scale.bevel:1
#include "codegen/llvm_emit.h"

#include "ir/printer.h"

#include <algorithm>

namespace bevel::codegen {

static std::string nodesOf(const Origin& origin) {
  std::string out;
  if (origin)
    for (const std::string& n : origin->nodes) out += (out.empty() ? "" : ", ") + n;
  return out;
}

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
  if (std::string nodes = nodesOf(f_.origin); !nodes.empty()) name += " [" + nodes + "]";
  f->setSubprogram(describe(name, f->getName()));
}

llvm::DISubprogram* KernelEmitter::describe(const std::string& name, llvm::StringRef symbol) {
  auto* type = di_->createSubroutineType(di_->getOrCreateTypeArray({}));
  auto flags = llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized;
  return di_->createFunction(diFile_, name, symbol, diFile_, 1, type, 1, llvm::DINode::FlagZero, flags);
}

/// What comes from an ONNX node looks like a function of the node's name that was inlined into the kernel.
const KernelEmitter::NodeFrame& KernelEmitter::frameOf(const Origin& origin, llvm::DISubprogram* scope) {
  std::string nodes = nodesOf(origin);
  auto [it, fresh] = nodeFrames_.try_emplace({scope, nodes});
  if (fresh) it->second = {describe(nodes, ""), llvm::DILocation::getDistinct(context_, 1, 0, scope)};
  return it->second;
}

/// Instructions made from here on belong to the statement's line and nodes; what has no line keeps the last
/// one.
void KernelEmitter::locate(const NodeRef& node) {
  llvm::DISubprogram* scope = debug_ && frame_.function ? frame_.function->getSubprogram() : nullptr;
  if (!scope) return;
  auto it = lines_.find(node.object());
  llvm::DebugLoc current = builder_.getCurrentDebugLocation();
  bool sameScope = current && current->getInlinedAtScope()->getSubprogram() == scope;
  if (it == lines_.end() && sameScope) return;
  unsigned line = it != lines_.end() ? unsigned(it->second) : 1;
  const Origin& origin = node.is<StmtNode>() && node->origin ? node->origin : f_.origin;
  NodeFrame frame = origin && !origin->nodes.empty() ? frameOf(origin, scope) : NodeFrame{scope, nullptr};
  builder_.SetCurrentDebugLocation(llvm::DILocation::get(context_, line, 0, frame.callee, frame.call));
}

} // namespace bevel::codegen
