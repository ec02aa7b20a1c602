#include "sched/steps/buffers.h"

#include "ir/storage_scope.h"
#include "ir/structural.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc = R"(Changes the storage scope of an intermediate buffer.)";

static Result<Plan> check(const Schedule& sch, const SetScope& s) {
  BEVEL_TRY(Path path, sch.locate(s.block));
  BEVEL_TRY(Buffer buffer, bufferOf(*realizeAt(path)->block, s.buffer));
  BEVEL_CHECK(checkIntermediate(sch.func(), buffer));
  BEVEL_CHECK(checkScope(s.storageScope));
  Buffer changed = with(buffer, &BufferNode::scope, s.storageScope);
  return Plan{replaceBuffers(sch.func()->body, BufferMap{{buffer->data, changed}})};
}

STEP_INFO(SetScope, "set_scope", kDoc)

} // namespace bevel::steps
