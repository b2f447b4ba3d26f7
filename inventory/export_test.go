package inventory

// The names that tests call these by.
type (
	AttributeReader = attributeReader
)

var (
	NewAttributeReader = newAttributeReader
	Plain              = plainFacts
)
