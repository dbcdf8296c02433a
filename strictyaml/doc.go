// Package strictyaml reads the part of YAML that everybody understands alike: mappings,
// lists, and plain values on one line. What else YAML can say is refused (anchors and
// aliases, tags, merges, blocks of lines, several documents, a name given twice), so
// that nobody has to guess what a file means.
//
// [Parse] makes a [Value] of a file; its methods say what has to be there, and an
// [Error] says in one sentence where that is not so. No error repeats a value, which
// may be a secret, nor a name that is no plain word.
//
// How long Parse takes grows with the file's length alone, whatever is in it: what is
// nested more than 20 deep, or has thousands of names, is refused.
//
//	root, err := strictyaml.Parse("rules.yaml", text)
//	pairs, err := root.Mapping()
//	for _, pair := range pairs {
//		switch pair.Name {
//		case "limit":
//			limit, err = pair.Value.Text()
//		default:
//			err = pair.Value.Refuse("there is no such thing")
//		}
//	}
package strictyaml
