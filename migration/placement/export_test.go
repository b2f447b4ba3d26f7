package placement

// What the tests in package placement_test see of the inside.

var (
	Admits         = admits
	Fit            = fit
	FitsTopology   = fitsTopology
	Free           = free
	MatchAggregate = matchAggregate
	Normalise      = normalise
	ParseWant      = parseWant
	QuotaText      = quotaText
	Take           = take
)
