// This package reads YAML and JSON that strangers wrote, and says in which
// line of which file a problem is.
//
// [Parse] refuses what makes YAML dangerous before anything expands or recurses:
// documents longer than [MaxSize], anchors and aliases, tags, merge keys, NUL
// bytes, nesting deeper than [MaxDepth]. What is left takes memory and time in
// proportion to its length. [Document.Decode] fills a struct and refuses unknown
// fields, [Document.JSON] is for decoders that read JSON only,
// [Document.Line] finds a field again, and [Document.Set] gives one another value.
//
// [Problem] is one thing that is wrong, [Problems] is the error that has them
// all, and [Report] collects them.
package yamldoc
