package etcd_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/record/etcd/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Member()
	goleak.VerifyTestMain(m)
}
