package fake_test

import (
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor/fake"
)

func TestAlikeValuesAreOne(t *testing.T) {
	var alike fake.Alike[string]
	one, same, other := alike.Keep("a"), alike.Keep("a"), alike.Keep("b")
	if one != same || one == other || *one != "a" || *other != "b" {
		t.Errorf("kept %p (%s), %p (%s), %p (%s)", one, *one, same, *same, other, *other)
	}
}

// An answer is valid until there is news again.
func TestNewsAreToldOnce(t *testing.T) {
	var news fake.News[int]
	if got := news.Take(); len(got) > 0 {
		t.Fatalf("at first there is %v", got)
	}
	news.Add(1)
	news.Add(2)
	told := news.Take()
	if more := news.Take(); len(more) > 0 || !slices.Equal(told, []int{1, 2}) {
		t.Fatalf("told %v, and then %v", told, more)
	}
	news.Add(3)
	if !slices.Equal(told, []int{1, 2}) || !slices.Equal(news.Take(), []int{3}) {
		t.Errorf("the first answer has become %v", told)
	}
}
