#include "ir/structural.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {R"(Changes the storage scope of an intermediate buffer.)",
                          R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,))
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * T.float32(2)
)",
                          R"(b = sch.get_sblock(name="B")
sch.set_scope(block=b, buffer=("write", 0), storage_scope="local")
)",
                          R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,), scope="local")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * T.float32(2)
)"};

struct SetScope {
  BlockRV block;
  BufferArg buffer = writeBuffer(0);
  std::string storageScope;
  STEP_FIELDS(SetScope, IN(block), IN(buffer), IN(storageScope))
};

static Result<Buffer> check(const Schedule& sch, const SetScope& s) {
  BEVEL_TRY(Path path, locate(sch, s.block));
  BEVEL_TRY(Buffer buffer, bufferOf(*realizeAt(path)->block, s.buffer));
  BEVEL_CHECK(checkIntermediate(sch.func(), buffer));
  if (s.storageScope.empty()) return fail(ErrorCode::kUsage, "the storage scope is empty");
  return buffer;
}

static void apply(Schedule& sch, SetScope& s, Buffer&& buffer) {
  auto changed = mutableCopy(buffer);
  changed->scope = s.storageScope;
  setBody(sch, replaceBuffers(sch.func()->body, BufferMap{{buffer->data, Buffer(changed)}}));
}

STEP_INFO(SetScope, "set_scope", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::setScope(BlockRV block, BufferArg buffer, std::string storageScope) {
  return runStep(*this, steps::SetScope{block, std::move(buffer), std::move(storageScope)});
}
} // namespace bevel
