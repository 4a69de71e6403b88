package template

import (
	"fmt"
	"strings"

	texttemplate "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/Masterminds/sprig/v3"
)

// refused are the functions of sprig that templates cannot use, because they read the environment or the network.
var refused = []string{"env", "expandenv", "getHostByName"}

// rules returns the rule of each function that templates can use, except the native ones. It is the allow-list: a new
// function of sprig is not available until it is added here.
func rules() map[string]rule {
	all := map[string]rule{}
	allow := func(r rule, names string) {
		for name := range strings.FieldsSeq(names) {
			all[name] = r
		}
	}
	textRules(allow)
	byteRules(allow)
	numberRules(allow)
	structureRules(allow)
	documentRules(allow)
	expensiveRules(allow)
	return all
}

// textRules are for functions on text, whose result has about the same size or a size that a check can compute.
func textRules(allow func(rule, string)) {
	allow(rule{class: textual}, "abbrev abbrevboth trim upper lower trimSuffix trimPrefix "+
		"contains hasPrefix hasSuffix plural base dir clean ext isAbs osBase osDir osClean osExt osIsAbs "+
		"b64dec b32dec hexdec fail regexQuoteMeta")
	allow(rule{class: textual, per: 64}, "title untitle swapcase toDate mustToDate")
	allow(rule{class: textual, per: 32}, "nospace initials snakecase camelcase kebabcase shuffle")
	allow(rule{class: textual, per: 32}, "quote squote cat toStrings sortAlpha js urlquery urlParse urlJoin")
	allow(rule{class: textual, per: 32, check: checkHTML}, "html")
	allow(rule{class: textual, check: checkCutSet}, "trimAll trimall")
	allow(rule{class: textual, per: 64, check: checkWrap}, "wrap")
	allow(rule{class: textual, per: 64, check: checkWrapWith}, "wrapWith")
	allow(rule{class: textual, check: checkRepeat}, "repeat")
	allow(rule{class: textual, check: checkIndent}, "indent nindent")
	allow(rule{class: textual, check: checkReplace}, "replace")
	allow(rule{class: textual, per: 64, check: checkJoin}, "join")
	allow(rule{class: textual, per: 64, check: checkSplit}, "split splitList splitn")
	allow(rule{class: textual}, "regexMatch mustRegexMatch regexFind mustRegexFind regexFindAll mustRegexFindAll regexReplaceAll "+
		"mustRegexReplaceAll regexReplaceAllLiteral mustRegexReplaceAllLiteral regexSplit mustRegexSplit")
	allow(rule{class: textual, steps: 20, check: checkVersion}, "semver semverCompare")
}

// byteRules are for functions that read the bytes of a value, whether they are text or not.
func byteRules(allow func(rule, string)) {
	allow(rule{}, "hello trunc substr sha1sum sha256sum sha512sum adler32sum b64enc b32enc uuidv4")
	allow(rule{per: 64}, "encryptAES decryptAES")
	allow(rule{class: prints, per: 32}, "toString print println")
	allow(rule{class: prints, per: 32, check: checkPrintf}, "printf")
}

// numberRules are for functions that compute.
func numberRules(allow func(rule, string)) {
	allow(rule{class: integers, per: 16}, "int int64 add1 add sub div mod mul biggest max min duration")
	allow(rule{class: floats, per: 16}, "float64 maxf minf ceil floor round")
	allow(rule{class: floats, steps: 5, per: 32, check: checkDecimal}, "add1f addf subf divf mulf")
	allow(rule{class: prints, per: 16}, "atoi toDecimal randInt")
	allow(rule{per: 128}, "eq ne lt le gt ge")
	allow(rule{check: checkUntil}, "until")
	allow(rule{check: checkUntilStep}, "untilStep")
	allow(rule{check: checkSeq}, "seq")
	allow(rule{check: checkRandom(8)}, "randAlphaNum randAlpha randAscii")
	allow(rule{check: checkRandom(16)}, "randNumeric")
	allow(rule{check: checkRandomBytes}, "randBytes")
	allow(rule{class: dates}, "ago date date_modify dateModify must_date_modify mustDateModify durationRound htmlDate now unixEpoch")
	allow(rule{class: dates, check: checkZone(2)}, "dateInZone date_in_zone")
	allow(rule{class: dates, check: checkZone(1)}, "htmlDateInZone")
}

// structureRules are for functions on lists and dicts.
func structureRules(allow func(rule, string)) {
	allow(rule{mode: reads, per: 64}, "index")
	allow(rule{mode: reads}, "default empty coalesce all any ternary typeOf typeIs typeIsLike kindOf kindIs "+
		"get unset hasKey dig first mustFirst last mustLast")
	allow(rule{mode: reads, check: checkSlice}, "slice mustSlice")
	allow(rule{mode: reads, check: spendBytes(128)}, "set")
	build := rule{mode: builds, per: 64}
	allow(build, "tuple list pick omit values pluck append push mustAppend mustPush prepend mustPrepend rest mustRest "+
		"initial mustInitial reverse mustReverse compact mustCompact")
	allow(rule{mode: builds, per: 16, check: checkDict}, "dict")
	allow(rule{mode: builds, per: 64, check: checkTogether}, "concat keys")
	allow(rule{mode: builds, per: 64, check: checkChunk}, "chunk mustChunk")
	allow(rule{per: 32}, "has mustHas deepEqual")
	allow(rule{per: 32, check: checkUnique}, "uniq mustUniq")
	allow(rule{per: 32, check: checkWithout}, "without mustWithout")
	allow(rule{per: 16, check: checkCopies}, "deepCopy mustDeepCopy merge mustMerge mergeOverwrite mustMergeOverwrite")
}

// documentRules are for JSON and YAML.
func documentRules(allow func(rule, string)) {
	allow(rule{per: 16, check: checkText}, "toJson mustToJson toPrettyJson mustToPrettyJson toRawJson mustToRawJson")
	allow(rule{class: textual, per: 16, check: checkJSON}, "fromJson mustFromJson")
	allow(rule{per: 4, check: checkText}, "toYaml")
	allow(rule{class: textual, per: 4}, "fromYaml")
}

// expensiveRules are for functions whose work is large for all arguments. One Secret can have ten password hashes or
// certificates, or three RSA keys of 4096 bits.
func expensiveRules(allow func(rule, string)) {
	allow(rule{steps: 100_000, check: checkPassword}, "bcrypt htpasswd")
	allow(rule{steps: 200_000, check: checkDerivation}, "derivePassword")
	allow(rule{steps: 500, check: checkPrivateKey}, "genPrivateKey")
	allow(rule{steps: 100_000, per: 16}, "genCA genSelfSignedCert")
	allow(rule{steps: 100_000, per: 16, check: checkKeys(4)}, "genSignedCert")
	allow(rule{steps: 2_000, per: 16, check: checkKeys(1)}, "buildCustomCert")
	allow(rule{steps: 2_000, per: 16, check: checkKeys(2)}, "genCAWithKey")
	allow(rule{steps: 2_000, per: 16, check: checkKeys(4)}, "genSelfSignedCertWithKey genSignedCertWithKey")
}

// own returns the functions that sprig does not have, and those that replace functions of sprig.
func own() map[string]any {
	all := map[string]any{
		"print":    fmt.Sprint,
		"printf":   printf,
		"println":  fmt.Sprintln,
		"html":     texttemplate.HTMLEscaper,
		"js":       texttemplate.JSEscaper,
		"urlquery": texttemplate.URLQueryEscaper,

		"toJson": toJSON, "mustToJson": toJSON,
		"toPrettyJson": toPrettyJSON, "mustToPrettyJson": toPrettyJSON,
		"toRawJson": toRawJSON, "mustToRawJson": toRawJSON,
		"fromJson": fromJSON, "mustFromJson": fromJSON,
		"toYaml":   toYAML,
		"fromYaml": fromYAML,
		"hexdec":   hexDecode,
		"b64dec":   base64Decode,
		"b32dec":   base32Decode,

		"index": index, "get": get,
		"default": fallback, "empty": empty, "coalesce": coalesce, "all": allSet, "any": anySet,
		"has": has, "mustHas": has, "uniq": uniq, "mustUniq": uniq, "without": without, "mustWithout": without,
		"compact": compact, "mustCompact": compact, "deepEqual": deepEqual,
		"eq": equal, "ne": notEqual,
		"lt": ordered(func(n int) bool { return n < 0 }), "le": ordered(func(n int) bool { return n <= 0 }),
		"gt": ordered(func(n int) bool { return n > 0 }), "ge": ordered(func(n int) bool { return n >= 0 }),
		"atoi": parseInteger, "toDecimal": parseOctal,

		"fail": func(string) (string, error) {
			return "", &failure{"the template stopped with an error; its message is not shown, because it can contain a value"}
		},
		"regexMatch": regexMatch, "mustRegexMatch": mustRegexMatch,
		"regexFind": regexFind, "mustRegexFind": regexFind,
		"regexFindAll": regexFindAll, "mustRegexFindAll": regexFindAll,
		"regexReplaceAll": regexReplaceAll, "mustRegexReplaceAll": regexReplaceAll,
		"regexReplaceAllLiteral": regexReplaceAllLiteral, "mustRegexReplaceAllLiteral": regexReplaceAllLiteral,
		"regexSplit": regexSplit, "mustRegexSplit": regexSplit,
	}
	replaceSilent(all, sprig.TxtFuncMap())
	return all
}

// replaceSilent adds functions of sprig in a form that does not return another value where it should fail, and those
// that tell types in a form that knows numbers of documents.
func replaceSilent(all, theirs map[string]any) {
	all["toDate"] = theirs["mustToDate"]
	all["dateModify"], all["date_modify"] = theirs["mustDateModify"], theirs["must_date_modify"]
	for _, name := range []string{"typeOf", "kindOf"} {
		nameOf, _ := theirs[name].(func(any) string)
		all[name] = func(v any) string { return nameOf(goNumber(v)) }
	}
	for _, name := range []string{"typeIs", "typeIsLike", "kindIs"} {
		is, _ := theirs[name].(func(string, any) bool)
		all[name] = func(want string, v any) bool { return is(want, goNumber(v)) }
	}
}

// builtin returns the functions of every template. It panics if the allow-list has a function that does not exist; a
// test checks that it does not.
func builtin() map[string]*function {
	theirs, ours := sprig.TxtFuncMap(), own()
	all := map[string]*function{}
	for name, r := range rules() {
		call := ours[name]
		if call == nil {
			call = theirs[name]
		}
		f, err := newFunction(name, call, r)
		if err != nil {
			panic(err)
		}
		all[name] = f
	}
	return all
}
