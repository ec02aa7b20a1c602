#include "sched/steps/get.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives the blocks of the same scope that write what a block reads, in program order.)";

static Result<Plan> check(const Schedule& sch, const GetProducers& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  return site.give(site.info.producers(site.self));
}

STEP_INFO(GetProducers, "get_producers", kDoc)

} // namespace bevel::steps
