package daemon

import (
	"testing"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Conditions and preferences of one's own are plugged in once, and hold for VMs that are
// rebuilt, too, unless the failover has others.
func TestFailoverChoosesAsTheControllerDoes(t *testing.T) {
	own := placement.Config{Filters: []placement.Filter{{Name: "own"}},
		Weighers: []placement.Weigher{{Name: "own"}}}
	other := placement.Config{Filters: []placement.Filter{{Name: "other"}}}
	c := Controller{Config: controller.Config{Placement: own,
		Evacuation: evacuation.Params{DrainKey: "leave"}}}
	f := c.failover()
	if f.Placement.Filters[0].Name != "own" || f.Placement.Weighers[0].Name != "own" ||
		f.Evacuation.DrainKey != "leave" {
		t.Errorf("the failover decides by %+v and %+v", f.Placement, f.Evacuation)
	}
	c.Failover = controller.FailoverConfig{Placement: other}
	if c.failover().Placement.Filters[0].Name != "other" {
		t.Error("the failover's own conditions are lost")
	}
}
