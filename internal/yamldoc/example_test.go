package yamldoc_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// Everything that is wrong is said at once, each with its place.
func ExampleParse() {
	doc, err := yamldoc.Parse("hosts.yaml", 1, []byte("hosts:\n- name: n1\n- nmae: n2\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var spec struct {
		Hosts []struct {
			Name string `yaml:"name"`
		} `yaml:"hosts"`
	}
	fmt.Println(doc.Decode(&spec))
	fmt.Println("hosts[0].name is in line", doc.Line("hosts[0].name"))
	// Output:
	// hosts.yaml:3: hosts[1].nmae: unknown field "nmae"
	// hosts[0].name is in line 2
}

// What expands to more than it is long is refused before it can.
func ExampleParse_bomb() {
	_, err := yamldoc.Parse("bomb.yaml", 1, []byte("a: &a [x, x]\nb: [*a, *a]\n"))
	fmt.Println(err)
	// Output:
	// bomb.yaml:1: YAML anchors, aliases, tags, merge keys and directives are not accepted
}
