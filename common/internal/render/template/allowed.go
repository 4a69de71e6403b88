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
	numberRules(allow)
	structureRules(allow)
	documentRules(allow)
	expensiveRules(allow)
	return all
}

// textRules are for functions from text to text, whose result has about the same size or a size that a check can
// compute.
func textRules(allow func(rule, string)) {
	plain := rule{}
	allow(plain, "hello abbrev abbrevboth trunc trim upper lower substr trimSuffix trimPrefix "+
		"contains hasPrefix hasSuffix plural base dir clean ext isAbs osBase osDir osClean osExt osIsAbs "+
		"sha1sum sha256sum sha512sum adler32sum b64enc b64dec b32enc b32dec hexdec "+
		"ago date date_modify dateModify must_date_modify mustDateModify duration durationRound htmlDate "+
		"now unixEpoch uuidv4 fail regexQuoteMeta")
	allow(rule{per: 64}, "title untitle swapcase toDate mustToDate encryptAES decryptAES")
	allow(rule{check: checkZone(2)}, "dateInZone date_in_zone")
	allow(rule{check: checkZone(1)}, "htmlDateInZone")
	allow(rule{per: 32}, "nospace initials snakecase camelcase kebabcase shuffle")
	allow(rule{per: 32}, "quote squote cat toString toStrings sortAlpha print println html js urlquery urlParse urlJoin")
	allow(rule{per: 32, check: checkPrintf}, "printf")
	allow(rule{check: checkCutSet}, "trimAll trimall")
	allow(rule{per: 64, check: checkWrap}, "wrap")
	allow(rule{per: 64, check: checkWrapWith}, "wrapWith")
	allow(rule{check: checkRepeat}, "repeat")
	allow(rule{check: checkIndent}, "indent nindent")
	allow(rule{check: checkReplace}, "replace")
	allow(rule{per: 64, check: checkJoin}, "join")
	allow(rule{per: 64, check: checkSplit}, "split splitList splitn")
	allow(rule{}, "regexMatch mustRegexMatch regexFind mustRegexFind regexFindAll mustRegexFindAll regexReplaceAll "+
		"mustRegexReplaceAll regexReplaceAllLiteral mustRegexReplaceAllLiteral regexSplit mustRegexSplit")
	allow(rule{steps: 20, check: checkVersion}, "semver semverCompare")
}

func numberRules(allow func(rule, string)) {
	allow(rule{per: 16}, "atoi int int64 float64 toDecimal add1 add sub div mod mul randInt biggest max min maxf minf ceil floor round")
	allow(rule{steps: 5, per: 32, check: checkDecimal}, "add1f addf subf divf mulf")
	allow(rule{check: checkUntil}, "until")
	allow(rule{check: checkUntilStep}, "untilStep")
	allow(rule{check: checkSeq}, "seq")
	allow(rule{check: checkRandom(8)}, "randAlphaNum randAlpha randAscii")
	allow(rule{check: checkRandom(16)}, "randNumeric")
	allow(rule{check: checkRandomBytes}, "randBytes")
}

// structureRules are for functions on lists and dicts.
func structureRules(allow func(rule, string)) {
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
	allow(rule{per: 16}, "toJson mustToJson toPrettyJson mustToPrettyJson toRawJson mustToRawJson")
	allow(rule{per: 16, check: checkJSON}, "fromJson mustFromJson")
	allow(rule{per: 4}, "toYaml")
	allow(rule{per: 4}, "fromYaml")
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
	return map[string]any{
		"print":    fmt.Sprint,
		"printf":   fmt.Sprintf,
		"println":  fmt.Sprintln,
		"html":     texttemplate.HTMLEscaper,
		"js":       texttemplate.JSEscaper,
		"urlquery": texttemplate.URLQueryEscaper,

		"toYaml":   toYAML,
		"fromYaml": fromYAML,
		"hexdec":   hexDecode,
		"b64dec":   base64Decode,
		"b32dec":   base32Decode,

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
