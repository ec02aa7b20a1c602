#include "sched/steps/get.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives the blocks of the same scope that read what a block writes, in program order.)";

static Result<Plan> check(const Schedule& sch, const GetConsumers& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  return site.give(site.info.consumers(site.self));
}

STEP_INFO(GetConsumers, "get_consumers", kDoc)

} // namespace bevel::steps
