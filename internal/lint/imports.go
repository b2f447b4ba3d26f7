package lint

import (
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// anything allows a package to import every other package of the module.
const anything = "*"

// core is what decides.
var core = []string{"hypervisor", "migration", "migration/placement", "migration/policy",
	"migration/convergence", "evacuation"}

// requests is what decides about a target that was asked for.
var requests = []string{"migration/placement/choose", "migration/placement/filter",
	"migration/placement/reserve", "migration/placement/weigh"}

// participants is what acts, in production as in the simulator.
var participants = slices.Concat(core, requests, []string{"agent", "controller",
	"controller/books", "hypervisor/fake",
	"controller/failover", "internal/due", "internal/names", "lease", "record", "sim/flaky",
	"sim/invariant"})

// domain is what the parts of the QMP backend that change a VM are made of.
var domain = []string{"hypervisor", "hypervisor/qmp/domain", "hypervisor/qmp/fault",
	"hypervisor/qmp/handover", "hypervisor/qmp/journal", "hypervisor/qmp/life",
	"hypervisor/qmp/machine", "hypervisor/qmp/monitor", "hypervisor/qmp/process",
	"hypervisor/qmp/qapi", "hypervisor/qmp/qemu"}

// libvirtDomain is what the parts of the libvirt backend that change a VM are made of.
var libvirtDomain = []string{"hypervisor", "hypervisor/libvirt/address",
	"hypervisor/libvirt/domxml", "hypervisor/libvirt/domxml/blockers",
	"hypervisor/libvirt/journal", "hypervisor/libvirt/life", "hypervisor/libvirt/node",
	"hypervisor/libvirt/storage", "hypervisor/libvirt/virt", "internal/durable", "internal/fault"}

// mayImport is the architecture: which packages of the module a package may
// import, its tests excepted. A package that is not listed is a finding; a key
// that ends in a slash covers all packages below it.
var mayImport = map[string][]string{
	"hypervisor": {},
	"hypervisor/fake": {"hypervisor", "hypervisor/fake/agenda", "hypervisor/fake/hardware",
		"hypervisor/fake/listing", "hypervisor/fake/memory", "hypervisor/fake/transfer",
		"internal/names"},
	"hypervisor/fake/agenda":   {"hypervisor"},
	"hypervisor/fake/hardware": {"hypervisor"},
	"hypervisor/fake/listing":  {"hypervisor"},
	"hypervisor/fake/memory":   {"hypervisor"},
	"hypervisor/fake/maxmin":   {"hypervisor"},
	"hypervisor/fake/transfer": {"hypervisor", "hypervisor/fake/agenda",
		"hypervisor/fake/listing", "hypervisor/fake/maxmin", "hypervisor/fake/memory",
		"internal/due", "internal/names"},
	"hypervisor/qmp": {"hypervisor", "hypervisor/qmp/action", "hypervisor/qmp/domain",
		"hypervisor/qmp/fault", "hypervisor/qmp/handover", "hypervisor/qmp/journal",
		"hypervisor/qmp/machine", "hypervisor/qmp/monitor", "hypervisor/qmp/probe",
		"hypervisor/qmp/qemu", "hypervisor/qmp/transfer"},
	"hypervisor/qmp/action":   slices.Concat(domain, []string{"hypervisor/qmp/transfer"}),
	"hypervisor/qmp/transfer": domain,
	"hypervisor/qmp/domain":   domain,
	"hypervisor/qmp/life":     {"hypervisor", "hypervisor/qmp/journal", "hypervisor/qmp/qapi"},
	"hypervisor/qmp/qemu": {"hypervisor", "hypervisor/qmp/fault", "hypervisor/qmp/machine",
		"hypervisor/qmp/monitor", "hypervisor/qmp/probe", "hypervisor/qmp/process",
		"hypervisor/qmp/qapi"},
	"hypervisor/qmp/fault":         {"hypervisor", "hypervisor/qmp/monitor", "internal/fault"},
	"hypervisor/qmp/handover":      {"hypervisor"},
	"hypervisor/qmp/journal":       {"hypervisor", "internal/durable"},
	"hypervisor/qmp/machine":       {"hypervisor"},
	"hypervisor/qmp/monitor":       {"hypervisor/qmp/monitor/event", "hypervisor/qmp/monitor/wire"},
	"hypervisor/qmp/monitor/event": {},
	"hypervisor/qmp/monitor/wire":  {},
	"hypervisor/qmp/probe":         {"hypervisor"},
	"hypervisor/qmp/process":       {},
	"hypervisor/qmp/qapi":          {},
	"hypervisor/libvirt": slices.Concat(libvirtDomain, []string{"hypervisor/libvirt/action",
		"hypervisor/libvirt/transfer"}),
	"hypervisor/libvirt/node":     libvirtDomain,
	"hypervisor/libvirt/storage":  libvirtDomain,
	"hypervisor/libvirt/precheck": libvirtDomain,
	"hypervisor/libvirt/transfer": slices.Concat(libvirtDomain,
		[]string{"hypervisor/libvirt/precheck"}),
	"hypervisor/libvirt/action": slices.Concat(libvirtDomain,
		[]string{"hypervisor/libvirt/transfer"}),
	"hypervisor/libvirt/life":    {"hypervisor", "hypervisor/libvirt/journal"},
	"hypervisor/libvirt/address": {"hypervisor"},
	"hypervisor/libvirt/journal": {"hypervisor", "internal/durable"},
	"hypervisor/libvirt/virt": {"hypervisor", "hypervisor/libvirt/virt/loop",
		"hypervisor/libvirt/virt/uri", "internal/fault"},
	"hypervisor/libvirt/virt/loop": {},
	"hypervisor/libvirt/virt/uri":  {"hypervisor"},
	"hypervisor/libvirt/domxml": {"hypervisor", "hypervisor/libvirt/domxml/internal/spec",
		"hypervisor/libvirt/domxml/internal/tree"},
	"hypervisor/libvirt/domxml/blockers": {"hypervisor", "hypervisor/libvirt/domxml",
		"hypervisor/libvirt/domxml/internal/tree"},
	"hypervisor/libvirt/domxml/internal/": {"hypervisor"},
	"hypervisor/libvirt/libvirttest": {"hypervisor/hypervisortest/guest",
		"hypervisor/libvirt/libvirttest/station"},
	"hypervisor/libvirt/libvirttest/station": {},
	"hypervisor/hypervisortest": {"hypervisor", "hypervisor/hypervisortest/internal/stage",
		"hypervisor/hypervisortest/internal/life", "hypervisor/hypervisortest/internal/move",
		"hypervisor/hypervisortest/internal/harm"},
	"hypervisor/hypervisortest/internal/stage": {"hypervisor"},
	"hypervisor/hypervisortest/internal/": {"hypervisor",
		"hypervisor/hypervisortest/internal/stage"},
	"hypervisor/hypervisortest/guest":       {"hypervisor/hypervisortest/guest/image"},
	"hypervisor/hypervisortest/guest/image": {},
	"migration/placement": {"hypervisor", "migration/placement/aggregate",
		"migration/placement/resource", "migration/placement/topology"},
	"migration/placement/resource":  {},
	"migration/placement/aggregate": {},
	"migration/placement/topology":  {"hypervisor"},
	"migration/placement/filter": {"hypervisor", "migration/placement",
		"migration/placement/aggregate", "migration/placement/resource",
		"migration/placement/topology"},
	"migration/placement/weigh":   {"hypervisor", "migration/placement"},
	"migration/placement/reserve": {"hypervisor", "migration/placement"},
	"migration/placement/choose": {"hypervisor", "migration/placement",
		"migration/placement/filter", "migration/placement/weigh"},
	"migration/policy":       {"hypervisor"},
	"migration/convergence":  {"hypervisor"},
	"migration/convergence/": {"hypervisor", "migration/convergence"},
	"migration": {"hypervisor", "migration/placement", "migration/placement/choose",
		"migration/policy", "migration/convergence", "migration/slot"},
	"migration/slot": {"hypervisor"},
	"evacuation":     {"hypervisor", "migration", "migration/placement"},
	"evacuation/adaptive": {"hypervisor", "evacuation", "migration/placement",
		"migration/placement/weigh", "migration/slot"},
	"plan": {"hypervisor", "internal/words", "migration/placement",
		"migration/placement/filter"},
	"plan/intake":   {"inventory", "inventory/books", "migration/placement/filter", "plan"},
	"plan/drain":    {"hypervisor", "migration/placement", "migration/placement/filter", "plan"},
	"plan/verify":   {"hypervisor", "migration/placement", "plan"},
	"plan/plantest": {"hypervisor", "migration/placement", "migration/placement/filter", "plan"},
	"plan/survive":  {"hypervisor", "internal/words", "migration/placement", "plan"},
	"plan/maintenance": {"hypervisor", "internal/words", "migration/placement", "plan",
		"plan/drain", "plan/survive"},
	"sim/rota": {"hypervisor", "inventory", "plan", "plan/maintenance", "sim/rehearse",
		"sim/scenario"},
	"sim/rehearse": {"evacuation", "hypervisor", "inventory", "migration", "migration/convergence",
		"plan", "plan/drain", "plan/intake", "plan/verify", "record", "sim", "sim/scenario",
		"sim/sweep"},
	"record": slices.Concat(core,
		[]string{"internal/names", "migration/placement/choose", "migration/placement/reserve"}),
	"record/bolt":      {"hypervisor", "internal/durable", "record", "record/changes"},
	"record/etcd":      {"hypervisor", "record"},
	"record/remote":    {"hypervisor", "internal/durable", "record"},
	"record/changes":   {"hypervisor", "record"},
	"record/etcd/":     {},
	"record/storetest": {"hypervisor", "migration", "record"},
	"lease":            {"hypervisor", "internal/due", "record"},
	"fence":            {"hypervisor"},
	"controller": slices.Concat(core, requests,
		[]string{"controller/books", "controller/options", "controller/queue", "record",
			"internal/due", "internal/names"}),
	"controller/options": {"hypervisor", "migration", "migration/convergence", "migration/policy",
		"record"},
	"controller/books": slices.Concat(core, requests,
		[]string{"migration/placement/resource", "record"}),
	"controller/queue": {"hypervisor", "migration", "record"},
	"agent": slices.Concat(core, requests, []string{"record", "internal/due", "agent/moves",
		"agent/room", "agent/terms", "agent/todo"}),
	"agent/moves": {"hypervisor", "migration", "migration/convergence", "record"},
	"agent/room":  slices.Concat(core, requests, []string{"record"}),
	"agent/todo":  {"internal/due", "record"},
	"agent/terms": {"hypervisor", "migration/convergence", "migration/placement",
		"migration/policy"},
	"controller/drive": {},
	"controller/failover": slices.Concat(core, requests, []string{"controller/books",
		"internal/due", "lease", "record"}),
	"daemon":        {anything},
	"daemon/":       {anything},
	"internal/due":  {},
	"internal/heap": {},
	"sim": slices.Concat(participants, []string{"sim/agenda", "sim/bound",
		"sim/drains", "sim/tally"}),
	"sim/tally":  {"hypervisor", "internal/names", "migration", "record", "sim/drains"},
	"sim/drains": {"hypervisor"},
	"sim/bound":  {"hypervisor", "record"},
	"sim/bench": slices.Concat(participants, []string{"migration/convergence/forecast",
		"migration/convergence/peers", "migration/slot", "sim", "sim/informed"}),
	"sim/informed": {"controller", "evacuation/adaptive", "hypervisor", "hypervisor/fake",
		"inventory"},
	"sim/contest": {"hypervisor", "hypervisor/fake", "migration/convergence",
		"migration/convergence/forecast", "migration/convergence/peers", "sim", "sim/bound"},
	"sim/incident": {"controller", "daemon/audit", "daemon/settings", "hypervisor",
		"internal/build", "internal/words", "inventory", "inventory/document", "lease",
		"migration", "migration/placement", "migration/placement/choose",
		"migration/placement/reserve", "record", "sim/incident/known", "sim/scenario"},
	"sim/incident/known": {"daemon/audit", "hypervisor", "internal/words", "migration", "record"},
	"sim/flaky":          {"hypervisor", "hypervisor/fake", "record"},
	"sim/agenda":         {},
	"sim/invariant": slices.Concat(core, requests,
		[]string{"hypervisor/fake", "record"}),
	"sim/report": {"hypervisor", "hypervisor/fake/maxmin", "migration", "record", "sim",
		"sim/sweep"},
	"sim/vary":  {},
	"sim/sweep": {"hypervisor", "sim", "sim/simtest/verdict"},
	"sim/sweep/run": {"hypervisor", "migration", "record", "sim", "sim/scenario",
		"sim/sweep"},
	"sim/failing": {"controller/failover", "hypervisor", "lease", "record", "sim"},
	"sim/explore": slices.Concat(participants, []string{"sim", "sim/agenda",
		"sim/explore/internal/checkpoint", "sim/explore/internal/fingerprint",
		"sim/explore/internal/scene", "sim/explore/internal/stage",
		"sim/explore/internal/steps", "sim/scenario"}),
	"sim/internal/mutant":   {},
	"sim/explore/internal/": {},
	"sim/simtest/verdict":   {"hypervisor", "internal/words"},
	"sim/explore/internal/scene": {"agent", "controller", "hypervisor",
		"sim/invariant"},
	"sim/explore/internal/stage": slices.Concat(participants,
		[]string{"sim/explore/internal/scene", "sim/explore/internal/steps"}),
	"sim/explore/internal/steps": {"sim/explore/internal/scene"},
	"sim/scenario": slices.Concat(participants,
		[]string{"evacuation/adaptive", "inventory", "inventory/costs",
			"inventory/document", "inventory/formats", "inventory/trace", "sim",
			"sim/informed", "sim/vary"}),
	"sim/simtest": slices.Concat(participants, []string{"internal/heap", "sim", "sim/explore",
		"sim/scenario", "sim/simtest/guard", "sim/simtest/shrink", "sim/simtest/verdict",
		"sim/simtest/worlds"}),
	"sim/simtest/guard":  slices.Concat(core, requests),
	"sim/simtest/shrink": {"inventory", "sim/simtest/worlds"},
	"sim/simtest/worlds": {"hypervisor", "inventory", "inventory/document",
		"migration/placement", "sim", "sim/scenario"},
	"inventory": slices.Concat(core, []string{"hypervisor/fake", "inventory/document",
		"inventory/facts", "inventory/quantity"}),
	"inventory/document": {},
	"inventory/quantity": {"hypervisor"},
	"inventory/facts": {"hypervisor", "inventory/quantity", "migration/placement",
		"migration/placement/aggregate", "migration/placement/resource",
		"migration/placement/topology"},
	"inventory/books": {"hypervisor", "inventory", "migration/placement",
		"migration/placement/choose"},
	"inventory/kubevirt": slices.Concat(core, []string{"hypervisor/fake", "inventory",
		"inventory/document", "inventory/kubevirt/internal/labels",
		"inventory/kubevirt/internal/split", "migration/placement/resource",
		"migration/placement/topology"}),
	"inventory/formats": {"inventory", "inventory/domains", "inventory/ganeti",
		"inventory/kubevirt", "inventory/nova"},
	"inventory/ganeti": {"evacuation", "hypervisor", "inventory", "migration/placement",
		"migration/placement/resource"},
	"inventory/nova": {"evacuation", "hypervisor", "inventory", "inventory/document",
		"migration/placement",
		"migration/placement/resource"},
	"inventory/domains": {"evacuation", "hypervisor", "hypervisor/libvirt/domxml",
		"hypervisor/libvirt/domxml/blockers", "inventory", "inventory/document",
		"migration/placement", "migration/placement/resource"},
	"inventory/trace": {"hypervisor", "hypervisor/fake", "inventory",
		"inventory/document"},
	"hypervisor/fake/measurement": {"hypervisor", "hypervisor/fake", "inventory/document"},
	"hypervisor/fake/calibrate": {"hypervisor", "hypervisor/fake",
		"hypervisor/fake/measurement"},
	"inventory/costs": {"hypervisor", "hypervisor/fake", "inventory/document",
		"inventory/quantity"},
	"inventory/kubevirt/internal/labels": {
		"migration/placement"},
	"inventory/kubevirt/internal/split": {"inventory/document"},
	"internal/names":                    {},
	"internal/words":                    {},
	"internal/build":                    {},
	"cmd/":                              {anything},
	"examples":                          {anything},
	"examples/":                         {anything},
	"internal/durable":                  {},
	"internal/fault":                    {"hypervisor"},
	"internal/census":                   {},
	"internal/lint":                     {},
	"internal/vectors":                  {},
}

// confined names modules that only one package and those below it, their tests
// included, may import.
var confined = map[string]string{
	"libvirt.org/":                     "hypervisor/libvirt",
	"github.com/digitalocean/go-qemu/": "hypervisor/qmp",
	"go.etcd.io/bbolt":                 "record/bolt",
	"go.etcd.io/etcd/":                 "record/etcd",
	"kubevirt.io/":                     "inventory/kubevirt",
}

func findImports(m *Module, report func(token.Pos, string, ...any)) {
	m.each(true, func(u *unit, f *file) {
		allowed, known := allowedFor(u.dir)
		if !known && !f.test {
			report(f.ast.Package, "package %s has no row in the table of imports", u.dir)
		}
		for _, spec := range f.ast.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			owner := ownerOf(name)
			if owner != "" && owner != u.dir && !strings.HasPrefix(u.dir, owner+"/") {
				report(spec.Pos(), "only %s imports %s", owner, name)
			}
			own, ours := strings.CutPrefix(name, m.path+"/")
			forbidden := !slices.Contains(allowed, own) && !slices.Contains(allowed, anything)
			if ours && known && !f.test && forbidden {
				report(spec.Pos(), "%s may not import %s", u.dir, own)
			}
			if spec.Name != nil && spec.Name.Name == "." {
				report(spec.Pos(), "a dot import hides where names come from")
			}
		}
	})
}

func allowedFor(dir string) (allowed []string, known bool) {
	if allowed, known = mayImport[dir]; known {
		return allowed, true
	}
	for key, below := range mayImport {
		if strings.HasSuffix(key, "/") && strings.HasPrefix(dir, key) {
			return below, true
		}
	}
	return nil, false
}

func ownerOf(path string) string {
	for prefix, owner := range confined {
		if strings.HasPrefix(path, prefix) {
			return owner
		}
	}
	return ""
}
