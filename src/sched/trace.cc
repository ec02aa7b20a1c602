// Traces: printing, replay, decisions, simplification. Parsing stands in trace_parser.cc.

#include "sched/trace.h"

#include "base/hash.h"
#include "sched/schedule.h"

#include <charconv>
#include <unordered_set>

namespace bevel {

namespace {

/// Prints values with the names of handles, made unique.
class TracePrinter {
public:
  explicit TracePrinter(const Trace& trace) : trace_(trace) {
    for (const StepRef& s : trace.steps)
      for (RV rv : s->outputs()) name(rv);
  }

  std::string step(const StepNode& s) {
    std::string out;
    const auto& fields = s.info->fields;
    if (s.info->hasResult()) {
      StepValue result = s.get(fields.back());
      bool isList = result.kind == StepValue::Kind::kList;
      for (size_t i = 0; isList && i < result.items.size(); ++i)
        out += (i ? ", " : "") + name(result.items[i].rv);
      if (!isList) out = name(result.rv);
      if (isList && result.items.size() == 1) out += ",";
      if (!out.empty()) out += " = ";
    }
    out += std::string("sch.") + s.info->name + "(";
    Ref<StepNode> defaults = s.info->create();
    bool first = true;
    auto item = [&](const std::string& text) {
      out += (first ? "" : ", ") + text;
      first = false;
    };
    for (const StepField& f : fields) {
      if (f.role == StepRole::kOut) continue;
      StepValue v = s.get(f);
      bool optional = f.role == StepRole::kOption || f.role == StepRole::kDecision;
      if (optional && v == defaults->get(f)) continue;
      if (f.role == StepRole::kVariadic)
        for (const StepValue& x : v.items) item(value(x));
      else
        item(f.name + "=" + value(v));
    }
    return out + ")";
  }

private:
  std::string name(RV rv) {
    size_t id = size_t(rv.id);
    if (chosen_.size() <= id) chosen_.resize(id + 1);
    if (!chosen_[id].empty()) return chosen_[id];
    std::string base = id < trace_.names.size() ? trace_.names[id] : "";
    if (base.empty()) base = std::string(1, "blv"[int(rv.kind)]) + std::to_string(id);
    std::string text = base;
    for (int i = 1; !used_.insert(text).second; ++i) text = base + "_" + std::to_string(i);
    return chosen_[id] = text;
  }

  static std::string number(double v) {
    char buffer[40];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
    std::string text(buffer, end);
    if (v != v) return "float(\"nan\")";
    if (v - v != 0) return v > 0 ? "float(\"inf\")" : "float(\"-inf\")";
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }

  static std::string quoted(const std::string& s) {
    std::string out = "\"";
    for (char c : s) {
      if (c == '"' || c == '\\') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    return out + "\"";
  }

  std::string value(const StepValue& v) {
    using K = StepValue::Kind;
    switch (v.kind) {
    case K::kNone:
      return "None";
    case K::kInt:
      return std::to_string(v.integer);
    case K::kFloat:
      return number(v.number);
    case K::kBool:
      return v.integer ? "True" : "False";
    case K::kString:
      return quoted(v.text);
    case K::kRV:
      return name(v.rv);
    case K::kIndexMap:
      return v.map.str();
    case K::kList: {
      bool tuple = v.text == "tuple";
      std::string out = tuple ? "(" : "[";
      for (size_t i = 0; i < v.items.size(); ++i) out += (i ? ", " : "") + value(v.items[i]);
      return out + (tuple ? ")" : "]");
    }
    case K::kDict: {
      std::string out = "{";
      for (size_t i = 0; i < v.items.size(); ++i)
        out += (i ? ", " : "") + quoted(v.keys[i]) + ": " + value(v.items[i]);
      return out + "}";
    }
    }
    return "None";
  }

  const Trace& trace_;
  std::vector<std::string> chosen_;
  std::unordered_set<std::string> used_;
};

StepValue mapRVs(StepValue v, const std::vector<int32_t>& map) {
  if (v.kind == StepValue::Kind::kRV) {
    bool known = v.rv.id >= 0 && v.rv.id < int32_t(map.size());
    v.rv.id = known ? map[size_t(v.rv.id)] : -1;
  }
  for (StepValue& item : v.items) item = mapRVs(std::move(item), map);
  return v;
}

const StepField* decisionField(const StepNode& s) {
  for (const StepField& f : s.info->fields)
    if (f.role == StepRole::kDecision) return &f;
  return nullptr;
}

/// Gives the schedule's handles numbers by the trace's, in the order both were made.
void recordOutputs(const std::vector<RV>& from, const std::vector<RV>& to, std::vector<int32_t>& map) {
  for (size_t i = 0; i < from.size() && i < to.size(); ++i) {
    size_t id = size_t(from[i].id);
    if (map.size() <= id) map.resize(id + 1, -1);
    map[id] = to[i].id;
  }
}

Error replayError(Error e, const Trace& trace, size_t index) {
  TracePrinter printer(trace);
  e.notes.push_back("in step " + std::to_string(index + 1) + ": " + printer.step(*trace.steps[index]));
  return e;
}

} // namespace

std::string Trace::str() const {
  TracePrinter printer(*this);
  std::string out;
  for (const StepRef& s : steps) out += printer.step(*s) + "\n";
  return out;
}

Status Trace::applyTo(Schedule& schedule) const {
  Schedule before = schedule;
  std::vector<int32_t> map;
  for (size_t i = 0; i < steps.size(); ++i) {
    Ref<StepNode> step = steps[i]->info->create();
    Status done;
    for (const StepField& f : step->info->fields)
      if (f.role != StepRole::kOut && done) done = f.set(step->data(), mapRVs(steps[i]->get(f), map));
    if (done) done = schedule.execute(step);
    if (!done) {
      Error error = replayError(std::move(done.error()), *this, i);
      schedule = std::move(before);
      return fail(std::move(error));
    }
    std::vector<RV> from = steps[i]->outputs(), to = step->outputs();
    if (from.size() != to.size()) {
      Error error(ErrorCode::kInvalid, "the step gives " + std::to_string(to.size()) +
                                           " handles where the trace expects " + std::to_string(from.size()));
      error = replayError(std::move(error), *this, i);
      schedule = std::move(before);
      return fail(std::move(error));
    }
    recordOutputs(from, to, map);
    std::vector<std::string> given(from.size());
    for (size_t k = 0; k < from.size(); ++k)
      if (size_t(from[k].id) < names.size()) given[k] = names[size_t(from[k].id)];
    schedule.setHandleNames(to, given);
  }
  return {};
}

std::optional<std::vector<int64_t>> Trace::decision(size_t i) const {
  const StepField* f = decisionField(*steps[i]);
  if (!f) return std::nullopt;
  StepValue v = steps[i]->get(*f);
  std::vector<int64_t> out;
  if (v.kind == StepValue::Kind::kInt) out.push_back(v.integer);
  for (const StepValue& item : v.items) out.push_back(item.integer);
  if (out.empty()) return std::nullopt;
  return out;
}

Trace Trace::withDecision(size_t i, const std::vector<int64_t>& decision) const {
  Trace out = *this;
  const StepField* f = decisionField(*steps[i]);
  if (!f) return out;
  Ref<StepNode> step = steps[i]->info->clone(*steps[i]);
  StepValue v = StepValue::none();
  if (!decision.empty() && !f->set(step->data(), toValue(decision)))
    v = StepValue::ofInt(decision[0]);
  else if (!decision.empty())
    v = toValue(decision);
  (void)f->set(step->data(), v);
  out.steps[i] = step;
  return out;
}

std::vector<size_t> Trace::samplingSteps() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < steps.size(); ++i)
    if (decisionField(*steps[i])) out.push_back(i);
  return out;
}

Trace Trace::simplified() const {
  std::unordered_set<int32_t> used;
  Trace out;
  out.names = names;
  for (size_t i = steps.size(); i-- > 0;) {
    std::string_view name = steps[i]->info->name;
    bool onlyLooks = name.starts_with("get_") || name.starts_with("sample_");
    bool needed = !onlyLooks;
    for (RV rv : steps[i]->outputs()) needed |= used.contains(rv.id);
    if (!needed) continue;
    out.steps.insert(out.steps.begin(), steps[i]);
    for (const StepField& f : steps[i]->info->fields)
      if (f.role != StepRole::kOut) forEachRV(steps[i]->get(f), [&](RV rv) { used.insert(rv.id); });
  }
  return out;
}

namespace {

/// Every handle numbered in the order of its making, so that traces compare and hash by what they do.
std::vector<StepRef> canonicalSteps(const Trace& trace) {
  std::vector<int32_t> map;
  std::vector<StepRef> out;
  int32_t next = 0;
  for (const StepRef& s : trace.steps) {
    for (RV rv : s->outputs()) {
      if (map.size() <= size_t(rv.id)) map.resize(size_t(rv.id) + 1, -1);
      map[size_t(rv.id)] = next++;
    }
    Ref<StepNode> step = s->info->clone(*s);
    for (const StepField& f : s->info->fields) (void)f.set(step->data(), mapRVs(s->get(f), map));
    out.push_back(step);
  }
  return out;
}

} // namespace

uint64_t Trace::hash() const {
  uint64_t h = steps.size();
  for (const StepRef& s : canonicalSteps(*this)) h = hashStep(*s, h);
  return h;
}

bool operator==(const Trace& a, const Trace& b) {
  if (a.steps.size() != b.steps.size()) return false;
  auto x = canonicalSteps(a), y = canonicalSteps(b);
  for (size_t i = 0; i < x.size(); ++i)
    if (!sameStep(*x[i], *y[i])) return false;
  return true;
}

} // namespace bevel
