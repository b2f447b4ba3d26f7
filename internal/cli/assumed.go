package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/plan"
)

// limitsOf returns the limits of settings as a document has them.
func limitsOf(s whatif.Settings) *plan.DocumentLimits {
	l := &plan.DocumentLimits{PerCluster: s.PerCluster, PerSource: s.PerSource, PerTarget: s.PerTarget, Bandwidth: s.Bandwidth}
	if l.PerTarget >= migration.Unlimited {
		l.PerTarget = 0
	}
	return l
}

// limitsIn returns the limits of a controller.
func limitsIn(c *migration.Cluster) *plan.DocumentLimits {
	return limitsOf(whatif.SettingsOf(c))
}

// differences writes those limits that differ, as they are in both.
func differences(a, b *plan.DocumentLimits) (in, other string) {
	var left, right []string
	differ := func(name, x, y string) {
		if x != y {
			left, right = append(left, name+"="+x), append(right, name+"="+y)
		}
	}
	differ("perCluster", limit(a.PerCluster, "unlimited"), limit(b.PerCluster, "unlimited"))
	differ("perSource", limit(a.PerSource, "unlimited"), limit(b.PerSource, "unlimited"))
	differ("perTarget", none(a.PerTarget == 0, a.PerTarget), none(b.PerTarget == 0, b.PerTarget))
	differ("bandwidth", none(a.Bandwidth == 0, a.Bandwidth), none(b.Bandwidth == 0, b.Bandwidth))
	return strings.Join(left, " "), strings.Join(right, " ")
}

// none writes what may be without a limit.
func none[T int | hypervisor.Bandwidth](is bool, v T) string {
	if is {
		return "unlimited"
	}
	return fmt.Sprint(v)
}

// assumes says which limits a plan takes that are not those of today.
func assumes(errs io.Writer, path string, d *plan.Document, present *plan.DocumentLimits) {
	if needs, has := differences(d.Limits, present); needs != "" {
		fmt.Fprintf(errs, "%s: its times hold with %s, and the limits are %s: set them in the controller's configuration first\n",
			path, needs, has)
	}
}

// warnLimits says which limits a plan takes that are not the controller's.
func (d *session) warnLimits(doc *plan.Document) {
	if doc.Limits == nil {
		return
	}
	needs, has := differences(doc.Limits, limitsIn(d.settings.Controller.Complete().Cluster))
	if needs == "" {
		return
	}
	whose := "the controller's configuration has"
	if !d.configured {
		whose = "the defaults, which are taken without --config, are"
	}
	fmt.Fprintf(d.err, "warning: the times of the plan hold with %s; %s %s\n", needs, whose, has)
}
