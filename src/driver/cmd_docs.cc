// bevel docs: the reference pages that are made from the compiler's own tables.
#include "driver/commands.h"
#include "driver/console.h"

#include "ops/docs.h"
#include "sched/step.h"

#include <CLI/CLI.hpp>

namespace bevel {
namespace {

struct Page {
  const char* name;
  std::string (*text)();
};
const Page kPages[] = {{"ops", opsMarkdown}, {"passes", passesMarkdown}, {"steps", stepsMarkdown}};

Status show(const std::string& name) {
  for (const Page& p : kPages)
    if (name == p.name) say("{}", p.text());
  return {};
}

} // namespace

void addDocs(CLI::App& app, Command& command) {
  auto page = std::make_shared<std::string>();
  CLI::App* c =
      app.add_subcommand("docs", "Print a reference page in Markdown: operators, passes or schedule steps");
  std::vector<std::string> names;
  for (const Page& p : kPages) names.push_back(p.name);
  c->add_option("PAGE", *page, "Which page")->required()->check(CLI::IsMember(names));
  c->callback([page, &command] { command.action = [page] { return show(*page); }; });
}

} // namespace bevel
