//go:build !race

package life_test

const raced = false
