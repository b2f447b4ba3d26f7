package books

// Asks is asks, for the tests.
var Asks = asks
