package etcdstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Member()
	goleak.VerifyTestMain(m)
}
