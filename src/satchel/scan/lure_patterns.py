"""More patterns of the scan's rules, made of named parts: what is read, and where it then goes.

Each part is a plain list of words. Patterns of two parts look for one near the other, so that
neither alone is a finding: an ordinary script downloads files, and another one runs programs.
"""

from collections.abc import Mapping
from types import MappingProxyType


def _near(first: str, second: str, letters: int = 300) -> str:
    """Return a pattern for a text that is soon followed by another, also on other lines."""
    return rf"{first}[\s\S]{{0,{letters}}}?{second}"


def _same_sentence(*parts: str, letters: int = 80) -> str:
    """Return a pattern for texts in one sentence, in this order."""
    return rf"[^.\n]{{0,{letters}}}?".join(parts)


# ---- code ----------------------------------------------------------------------------------------

_FILE = r"[\"']?(\$\{?\w+\}?|[\w./~$-]{2,})[\"']?"
_SHELL_RUNS = r"(?:sudo\s+)?(?:ba|z|da)?sh|python3?|node|perl|ruby|source|\.|exec|nohup|chmod\s+\S+"
_FETCHES = (
    r"(?:urlretrieve\("
    r"|urlopen\("
    r"|requests\.get\("
    r"|httpx\.get\("
    r"|https?\.get\("
    r"|\bfetch\("
    r"|axios\.get\("
    r"|Invoke-WebRequest)"
)
_EVALUATES = (
    r"(?:exec_module\("
    r"|runIn(?:This|New)Context\("
    r"|vm\.Script\("
    r"|import\(\s*[\"'`]data:"
    r"|_compile\("
    r"|run_path\("
    r"|runpy\."
    r"|execfile\("
    r"|load_source\("
    r"|SourceFileLoader"
    r"|(?<![.\w])execScript\()"
)
_DECODES = (
    r"(?:\w*b(?:16|32|64|85)decode\("
    r"|a85decode\("
    r"|\batob\("
    r"|unhexlify\("
    r"|fromhex\("
    r"|\bbytes\(\s*\["
    r"|bytearray\(\s*\["
    r"|base64_decode\("
    r"|decode64\("
    r"|unpack1?\([\"']m"
    r"|fromCharCode"
    r"|from\([^)\n]{1,60},\s*[\"'](?:base64|hex)[\"']\)"
    r"|rot_?13)"
)
_RUNS_TEXT = r"(?<![.\w])(?:exec|eval|Function|compile)\s*\(\s*(?![\"'])"
_KEY_NAMES = (
    r"(?:token"
    r"|secret"
    r"|credential"
    r"|passw"
    r"|\.pem\b"
    r"|\.key\b"
    r"|id_\*"
    r"|id_[re]"
    r"|\.env\b"
    r"|\.kdbx"
    r"|wallet"
    r"|\.p12\b"
    r"|\.ovpn)"
)
_HOME = r"(?:~|\$HOME|/home\b|/Users\b|homedir\(\)|\.home\(\)|expanduser|/root\b|\s/(?=\s))"
_PRINTS_SECRETS = (
    r"(?:gh\s+auth\s+token"
    r"|aws\s+configure\s+get\s+\S*(?:secret|token)"
    r"|git\s+credential\s+fill"
    r"|gcloud\s+auth\s+print-\S+"
    r"|aws\s+sts\s+(?:get-session-token|assume-role)"
    r"|aws\s+configure\s+export-credentials"
    r"|az\s+account\s+get-access-token"
    r"|npm\s+token\s+list"
    r"|vault\s+(?:kv\s+get|token\s+lookup)\S*"
    r"|op\s+(?:read|item\s+get)"
    r"|pass\s+show)"
)
_WHO = r"\$\(\s*(?:whoami|hostname|id|uname|ifconfig|ip\s+a|pwd|env|printenv)\b"
_WEB = r"\b(?:curl|wget|nc|ncat)\b"
_SHELL_FILES = r"\.(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv|bash_login)\b"
_WRITES = r"(?:write_text|write_bytes|\.write\(|appendFile|writeFile|json\.dump\(|[\"']a\+?[\"'])"
_CLIENT_FILES = (
    r"\.(?:claude|codex|cursor|gemini|windsurf|openclaw)\b[^\n]{0,40}"
    r"(?:settings|mcp|config|hooks|rules)"
)

_RUNS_FILE = (
    r"(?:\b(?:chmod|exec\w*|spawn\w*|system|run|popen|call|start\w*|sh|bash|python3?|node|source)\b"
    r"|&|\./)[^\n]{0,40}?"
)
_TEMPORARY = r"(?:/tmp|/var/tmp|/dev/shm|\$\{?TMPDIR\}?|\$env:TEMP|%TEMP%|~/\.cache)[/\\]"
_IDENTIFIES = (
    r"(?:getpass\.getuser\(\)"
    r"|platform\.node\(\)"
    r"|gethostname\(\)"
    r"|os\.hostname\(\)"
    r"|os\.userInfo\(\)"
    r"|uuid\.getnode\(\)"
    r"|os\.getlogin\(\)"
    r"|/etc/passwd\b)"
)
_SENDS = (
    r"(?:requests?\.(?:post|put|get)\("
    r"|httpx\.\w+\("
    r"|urlopen\("
    r"|\bfetch\("
    r"|axios\.\w+\("
    r"|net\.(?:connect|createConnection|Socket)"
    r"|create_connection\("
    r"|\.sendall\("
    r"|\.connect\(\("
    r"|https?\.request\("
    r"|\bcurl\s"
    r"|\bwget\s"
    r"|Invoke-RestMethod)"
)
_KEY_FILES = (
    r"(?:id_(?:rsa|ed25519|ecdsa)|\.npmrc|\.pypirc|\.netrc|\.git-credentials|\.aws|\.kube|\.docker"
    r"|\.pgpass|wallet\.dat|\.gnupg|\.ssh|credentials|\.vault-token|\.config/gcloud)"
)
_PUBLIC_IP = (
    r"(?!127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|0\.|169\.254\.|255\.)"
    r"\d{1,3}(?:\.\d{1,3}){3}\b"
)
_TINY = r"[\"'][\w ]{1,8}[\"']"

# ---- words ---------------------------------------------------------------------------------------

_NOT = (
    r"(?:do\s+not|don['\u2019]?t|does\s+not|doesn['\u2019]?t|never|must\s+not|should\s+not|cannot)"
)
_PEOPLE = r"(?:user|human|person|operator|developer|reader|reviewer|customer|owner|maintainer)s?"
_RULES = (
    r"(?:instructions?|guidelines?|rules|directives?|polic(?:y|ies)|prompts?|restrictions|safeguards"
    r"|limits|constraints|guardrails)"
)
_VOID = (
    r"(?:superseded|overruled|overridden|(?:null\s+and\s+)?void|obsolete|revoked|cancel?led"
    r"|no\s+longer\s+(?:apply|applies|valid|count|bind)|(?:do|does)\s+not\s+apply\s+(?:to\s+you|here)"
    r"|were\s+(?:only\s+)?a\s+test)"
)
_GIVEN_BEFORE = (
    r"(?:you\s+(?:received|were\s+given|have\s+been\s+given|got|had|follow(?:ed)?)|asked\s+for"
    r"|from\s+(?:earlier|before|above)|at\s+the\s+(?:start|beginning)|previous|earlier|prior|other)"
)
_SECRETS = (
    r"(?:\.env\s+files?|tokens?|passwords?|passphrases?|api\s+keys?|private\s+keys?|ssh\s+keys?"
    r"|secrets?|credentials?|recovery\s+(?:codes?|phrases?))"
)
_OUTSIDE = (
    r"(?:parent\s+(?:directories|folders)|home\s+(?:directory|folder)|user(?:'s)?\s+home|whole\s+(?:disk|machine|system)"
    r"|other\s+(?:projects|repositories|directories|folders)|outside\s+(?:of\s+)?the\s+(?:project"
    r"|repository|workspace)|up\s+to\s+the\s+root)"
)
_ALL_OF_IT = (
    r"(?:(?:complete|full|entire|whole|verbatim|exact|raw)\s+(?:text|contents?|copy|source|history"
    r"|conversation|transcript|chat)|(?:last|latest|every|all|each)\s+(?:of\s+the\s+)?"
    r"(?:user(?:'s)?\s+)?(?:messages?|prompts?|conversations?))"
)
_SLOT = r"[`\"']?\w+[`\"']?\s+(?:parameter|field|argument|header|query|property|option)"
_LATER = (
    r"(?:later|future|every|all|other|next|new|each|subsequent)\s+(?:sessions?|conversations?|chats?"
    r"|agents?|runs?|assistants?)"
)
_MEMORY_FILES = r"(?:CLAUDE|AGENTS|GEMINI|SOUL|MEMORY|copilot-instructions|\.cursorrules)(?:\.md)?"
_PAYMENT = (
    r"(?:IBAN|wallet\s+address|bank\s+(?:details|account)|account\s+number|payee|recipient(?:'s)?"
    r"(?:\s+address)?|bitcoin\s+address|routing\s+number|payment\s+(?:link|address))"
)
_PROGRAM_FILE = (
    r"\.(?:tgz|tar\.\w+|zip|7z|rar|exe|msi|dmg|pkg|deb|rpm|appimage|bin|run|bat|ps1|scr|jar)"
)
_NOT_KNOWN = r"(?!(?:www\.)?(?:github\.com|gitlab\.com|nodejs\.org|python\.org|go\.dev)/)"

LURE_PATTERNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "fetch-and-run": (
            r"<<<\s*[\"']?\$\(\s*(?:curl|wget)\b",
            (
                r"\b(?:curl|wget|https?://)[\s\S]{0,300}?\b(?:run|popen|spawn\w*|call|execFile\w*)"
                r"\(\s*\[?\s*[\"'](?:/bin/)?(?:ba|z)?sh[\"'][^\n]{0,60}(?:input|stdin)"
            ),
            _near(r"https?://", _EVALUATES, 500),
            r"https?://\S{1,200}[\s\S]{0,150}?(?<![.\w])(?:exec|eval)\(\s*[a-z_]\w*[.,)\[]",
            (
                r"\b(?:curl|wget)\b[\s\S]{0,250}?\bchmod\s+\S{2,6}\s+[\"']?([\w./~$-]{3,})[\"']?\s*(?:&&|;|\n)\s*"
                r"(?:sudo\s+|nohup\s+)?(?:\./)?[\"']?\1"
            ),
            (
                rf"{_FETCHES}[\s\S]{{0,300}}?(?:subprocess\.\w+|popen|execFile\w*|spawn\w*)\([^\n]{{0,80}}[\"']-[ce][\"']"
                rf"\s*,\s*\w"
            ),
            r"\.then\(\s*(?:eval\b|new\s+Function\()",
            (
                r"\bdownload\w*\b[^\n]{0,80}\bfrom\s+<?[`\"']?https?://\S{1,200}[^.\n]{0,60}\b(?:and|then)\s+(?:run|execute"
                r"|start|launch)\s+(?:it|the)\b"
            ),
            (
                r"\b(?:curl|wget)\b[^\n]{0,200}\|\s*(?:sudo\s+)?tar\b[^\n]{0,80}(?:&&|;)\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?"
                r"(?:\./|/tmp/|(?:ba)?sh\s)"
            ),
            (
                r"\b(?:import|require)\(\s*[\"'`]https?://(?!(?:deno\.land|esm\.sh|cdn\.jsdelivr\.net|unpkg\.com"
                r"|cdnjs\.|cdn\.skypack))"
            ),
            (
                r"\b(?:python3?|node|perl|ruby|php|(?:ba|z|da)?sh)\s+-\w*[ce]\s*\\?[\"'`]?\s*(?:\$\(|`)\s*"
                r"(?:curl|wget)"
            ),
            (
                r"\b(?:eval|instance_eval|system|shell_exec|passthru)\b\s*\(?\s*(?:Net::HTTP|URI\.(?:open|parse)"
                r"|open\([\"']https?|LWP|file_get_contents\([\"']https?)"
            ),
            r"[\"'](?:pre|post)?install[\"']\s*:\s*[\"'][^\n]{0,120}(?:curl|wget|https?\b|node\s+-e|eval)",
            (
                rf"\b(?:curl|wget)\b[^\n]{{0,200}}?(?:\s-\w{{0,6}}o|\s-\w{{0,6}}O|--output(?:-document)?|>)[\s=]*{_FILE}"
                rf"[\s\S]{{0,200}}?{_RUNS_FILE}\1"
            ),
            r"DownloadFile\([^,\n]{1,100},\s*[\"']?([^\"')\n]{3,100})[\"']?\)[\s\S]{0,100}?\1",
            rf"{_FETCHES}[\s\S]{{0,400}}?new\s+Function\(",
            rf"https?://{_PUBLIC_IP}",
            (
                r"\bpaste\b[^.\n]{0,80}\b(?:https?://\S+)[^\n]{0,80}\b(?:terminal|shell|powershell|console)\b"
                r"|\b(?:terminal|shell|powershell|console)\b[^.\n]{0,60}\bpaste\b[^.\n]{0,80}\bhttps?://"
            ),
            # A file is fetched by a shell, and run by the name that it was given.
            (
                rf"\b(?:curl|wget)\b[^\n]{{0,200}}?(?:\s-\w{{0,6}}o|\s-\w{{0,6}}O|--output(?:-document)?|>)[\s=]*{_FILE}"
                rf"[\s\S]{{0,120}}?(?:^|\n|;|&&)\s*(?:{_SHELL_RUNS})\s+[\"']?\1"
            ),
            # The text of a script for an interpreter is itself fetched.
            (
                r"(?:(?:ba|z|da)?sh|python3?|node|perl|ruby)\b[^\n]{0,60}<<[\s\S]{0,200}?\$\(\s*"
                r"(?:curl|wget)"
            ),
            (
                r"urlretrieve\(\s*[^,\n]{1,200},\s*(\w+)[\s\S]{0,300}?"
                r"(?:subprocess\.\w+|os\.system|popen|startfile)\(\s*\[?[^\n]{0,60}?\b\1\b"
            ),
            _near(_FETCHES, _EVALUATES, 500),
            (
                rf"\b(?:download|fetch|grab|get)\b[\s\S]{{0,40}}?https?://{_NOT_KNOWN}\S{{1,200}}?"
                rf"{_PROGRAM_FILE}\b[\s\S]{{0,120}}?\b(?:run|start|execute|launch|double-click|open)\b"
            ),
        ),
        "obfuscated-code": (
            r"\bchr\(\w{1,20}\)\s+for\s+\w{1,20}\s+in\s+[\[(]\s*\d",
            r"\bdecode\b[^.\n]{0,40}\b(?:and|then)\s+(?:run|execute|eval|pipe)\b",
            r"\bmarshal\.loads\(|\btypes\.CodeType\(",
            r"(?:window|globalThis|self|global|this)\[\s*\w{1,20}\s*\+\s*\w{1,20}\s*\]\s*\(",
            r"fromCharCode\(\s*(?:0x)?\w{1,4}\s*(?:,\s*(?:0x)?\w{1,4}\s*){3,40}\)|(?:\[char\]\s*(?:0x)?\w{2,4}\s*\+?\s*){2,}",
            rf"\w\[\s*{_DECODES}",
            r"(?:%[67][0-9a-f]){5,60}",
            r"\$\(\s*echo\s+[\"']?[A-Za-z0-9+/=]{4,200}[\"']?\s*\|\s*base64\s+-\w*[dD]",
            r"\b(?:perl|python3?|ruby|node|php|awk)\s+-\w*[ecr]\b[^\n]{0,200}\|\s*(?:ba|z|da)?sh\b",
            r"\[\s*[\"'`]\w{1,10}[\"'`]\s*\+\s*[\"'`]\w{1,12}[\"'`]\s*\]",
            r"\b(?:shell_exec|system|exec|run|popen)\s*\(\s*(?:\[\s*)?bytes\(\s*\[",
            r"[\"'][\w.]{2,20}[\"']\[::-1\]",
            # A word in pieces that are joined without anything between them.
            (
                rf"(?<![\w\s])(?:''|\"\")\.join\(\s*[\[(]\s*(?:{_TINY}\s*,\s*){{1,20}}{_TINY}\s*[\])]\s*\)"
                rf"|\[\s*(?:{_TINY}\s*,\s*){{1,20}}{_TINY}\s*\]\.join\(\s*(?:''|\"\"|``)\s*\)"
            ),
            rf"(?:\brequire|import_module|__import__|\bimport)\(\s*(?:\w{{1,20}}\(\s*)?{_DECODES}",
            _near(r"FromBase64String", r"\b(?:iex|Invoke-Expression)\b", 300),
            r"chr\(\s*ord\([^)\n]{1,20}\)\s*[\^+-]",
            _near(_DECODES, _RUNS_TEXT, 300),
            r"\beval\s+[\"']?(?:\$\{?\w{1,20}\}?){2,}",
            # Letters in the middle of a command are quoted, so that its name is not found.
            (
                r"\b(?:b(?:''|\"\"|\\)a?sh|ba(?:''|\"\"|\\)sh|c(?:''|\"\"|\\)url|cu(?:''|\"\"|\\)rl"
                r"|w(?:''|\"\"|\\)get|e(?:''|\"\"|\\)val|py(?:''|\"\")thon)\b"
            ),
            r"\[\s*[\"'`]\w{1,10}[\"'`]\s*\+\s*[\"'`]\w{1,10}[\"'`]\s*\]\s*[(.\[]",
            (
                r"(?:base64|openssl|xxd)\s[^\n]{0,60}(?:-d|-D|--decode|-r)\b[^\n]{0,80}?(?:>|-o|-out)\s*"
                r"([\w./~$\"{}-]{3,})[\s\S]{0,120}?(?:sh|python3?|node|chmod\s+\S+|\.)\s+\1"
            ),
            r"(?:\b_0x[0-9a-f]{2,8}\b[\s\S]{0,200}?){3}",
            # Words written as the numbers of their letters.
            r"(?:\\x[67][0-9a-f]){4,40}|(?:\\1[4-7][0-7]){4,40}|(?:\\u00[67][0-9a-f]){4,40}",
            r"(?:\b(?:9[7-9]|1[01]\d|12[0-2])\s*,\s*){6,60}",
        ),
        "credential-access": (
            r"\bgrep\b[^\n]{0,60}BEGIN[^\n]{0,20}PRIVATE\s+KEY",
            (
                r"\bpasswords?\s+(?:of|from|in)\s+(?:the\s+)?(?:Chrome|Firefox|Safari|Edge|Brave"
                r"|browser)\b"
            ),
            r"os\.environ\.items\(\)[^\n]{0,80}(?:KEY|TOKEN|SECRET|PASSW)",
            r"(?:homedir\(\)|\.home\(\)|expanduser|\.env\.HOME)[^\n]{0,20}[\"'/]\.env[\"']",
            r"\b(?:tar|zip|7z|rar)\b[^\n]{0,80}(?:~|\$HOME)/\.(?:ssh|aws|gnupg|kube|config|docker)\b",
            (
                rf"[\"']{_KEY_FILES}[\"']\s*,\s*[\"'][\w./]{{0,20}}{_KEY_FILES}[\"']"
                rf"[\s\S]{{0,200}}?{_HOME}"
            ),
            _same_sentence(
                r"\b(?:collect|gather|find|list|get)\b",
                _SECRETS,
                r"\benvironment\b",
                r"\b(?:show|print|list|table|write|put|include)\b",
                letters=40,
            ),
            r"\b(?:printenv|env|set)\s*\|\s*e?grep\b[^\n]{0,60}(?:key|secret|token|pass)",
            r"\bpasswords?\b[^.\n]{0,40}\b(?:saved|stored)\b[^.\n]{0,20}\bbrowser",
            (
                r"\b(?:print|show|list|output|log|write|echo|display|dump)\w*\b[^.\n]{0,40}\benvironment\s+variables\b"
                r"[^.\n]{0,60}\b(?:KEY|SECRET|TOKEN|PASSWORD)"
            ),
            (
                r"\b(?:tokens?|keys?|secrets?|passwords?|credentials)\b[^.\n]{0,30}\bfrom\s+(?:the\s+|your\s+)?environment\b"
                r"[^.\n]{0,60}\b(?:write|save|print|list|store|put|log|output)\b"
            ),
            (
                r"\bkeychain\b[^.\n]{0,40}\b(?:fetch|get|read|take|extract|dump|pull)\b|\b(?:fetch|take|extract|dump"
                r"|pull)\b[^.\n]{0,60}\bkeychain\b"
            ),
            r"\.mozilla/firefox|\bcookies\.sqlite\b",
            r"(?:rglob|glob|walk|find)\b[^\n]{0,40}\*\.(?:kdbx|p12|pfx|ovpn|keystore|jks|wallet|ppk)\b",
            _same_sentence(
                r"\b(?:find|look|search|check|get|take|copy|extract|retrieve)\w*\b",
                _SECRETS,
                r"\b(?:keychain|shell\s+history|password\s+manager|browser(?:'s)?\s+\w+|clipboard)\b",
            ),
            r"\bfind\b[^.\n]{0,40}\bkeys?\b[^.\n]{0,60}\b(?:keychain|shell\s+history|password\s+manager)\b",
            rf"{_HOME}[\s\S]{{0,200}}?[\"']{_KEY_FILES}[\"']\s*,\s*[\"'][\w./]{{0,20}}{_KEY_FILES}",
            rf"\b(?:grep|rg|find|glob|search)\b[^\n]{{0,60}}(?:AKIA|ghp_|xox|sk-)[\w\[({{][^\n]{{0,80}}{_HOME}",
            (
                r"(?:check_output|subprocess\.\w+|exec\w*|spawn\w*)\(\s*\[?\s*[\"'`](?:gh[\"',\s]+auth[\"',\s]+token"
                r"|aws[\"',\s]+configure[\"',\s]+(?:get|export)|gcloud[\"',\s]+auth[\"',\s]+print)"
            ),
            _same_sentence(
                r"\b(?:read|open|collect|list|copy|load|look\s+at|go\s+through|scan)\w*\b",
                r"\b(?:every|all|any)\b",
                r"\b(?:dot\s?|hidden\s+|config\w*\s+)?files?\b",
                r"\bhome\s+(?:directory|folder)\b",
                letters=40,
            ),
            (
                rf"(?:glob|find|rglob|walk|grep|rg|locate|scandir)\b[^\n]{{0,60}}{_HOME}[^\n]{{0,80}}?"
                rf"{_KEY_NAMES}"
            ),
            (
                r"(?:homedir\(\)|\.home\(\)|~|\$HOME|expanduser)[^\n]{0,30}(?:\.npmrc|\.yarnrc|\.pgpass"
                r"|\.my\.cnf|\.boto|\.vault-token|\.cargo/credentials|\.m2/settings|rclone\.conf"
                r"|\.terraform\.d|\.config/op\b|\.databrickscfg|\.snowflake)"
            ),
            r"\b(?:browser_cookie3|rookiepy|pycookiecheat|CryptUnprotectData|chainbreaker)\b",
            rf"{_PRINTS_SECRETS}[^\n]{{0,60}}(?:>>?\s*[\w./~$]|\|\s*(?:tee|curl|nc|base64|xargs))",
            r"kubectl\s+get\s+secrets?\b[^\n]{0,80}(?:--all-namespaces|-A\b)[^\n]{0,40}-o",
            _same_sentence(
                r"\b(?:look|search|check|scan|read|find|open|go\s+through|inspect|list|collect)\b",
                _SECRETS,
                _OUTSIDE,
            ),
            _same_sentence(
                r"\b(?:look|search|check|scan|read|find|open|go\s+through|inspect|list|collect)\b",
                _OUTSIDE,
                _SECRETS,
            ),
            (
                r"\b(?:aws|ssh|gnupg|gcloud|kube|azure)\s+(?:directory|folder)\b[^.\n]{0,60}\bhome\b"
                r"|\b(?:credentials?|keys?)\b[^.\n]{0,60}\b(?:aws|ssh|gnupg|gcloud|kube|azure)\s+"
                r"(?:directory|folder)\b"
            ),
        ),
        "sends-data-out": (
            r"\b(?:nc|ncat)\b[^\n]{0,60}<\s*[/~]",
            (
                r"\b(?:send|post|upload|submit|transmit|forward)\s+(?:all|every|each|any|the\s+(?:whole"
                r"|entire|full|complete))\b[^.\n]{0,80}\bto\s+(?:\w+\s+){0,6}<?[`\"']?https?://"
            ),
            (
                r"\b(?:whenever|every\s+time|each\s+time|after\s+each)\b[^.\n]{0,60}\b(?:send|post"
                r"|upload|report|submit|forward)\b[^.\n]{0,80}https?://"
            ),
            r"\bgit\s+(?:diff|log|show|archive|bundle)\b[^\n]{0,80}\|\s*(?:curl|nc|wget)\b",
            (
                r"\b(?:encode|append|add|put)\b[^.\n]{0,40}\b(?:question|message|prompt|answer"
                r"|conversation|chat|reply)\b[^.\n]{0,60}https?://"
            ),
            (
                rf"{_SENDS}[\s\S]{{0,200}}?(?:open|readFile\w*|Path)\(\s*[\"'`](?:\./)?"
                rf"\.env(?:\.\w{{1,12}})?[\"'`]"
            ),
            (
                r"\b(?:forward|send|copy|redirect|bcc)\b[^.\n]{0,20}\b(?:every|all|each|any)\b"
                r"[^\n]{0,80}\bto\s+\S{1,60}@\w"
            ),
            r"JSON\.stringify\(\s*process\.env\s*[,)]|json\.dumps\(\s*(?:dict\(\s*)?os\.environ\b(?!\.get|\[)",
            (
                r"\b(?:header|parameter|field|query|body)\b[^.\n]{0,40}\b(?:with|contain\w*|includ\w*)\s+(?:the\s+)?(?:user"
                r"(?:'s)?|conversation|chat)\b[^.\n]{0,40}\b(?:prompt|message|history|input)\b"
            ),
            rf"(?:open|readFile\w*|Path)\(\s*[\"'`](?:\./)?\.env\b[\s\S]{{0,200}}?{_SENDS}",
            (
                r"\b(?:send|post|upload|report|submit|transmit)\w*\b[^\n]{0,160}\b(?:what\s+the\s+user|user's|conversation"
                r"|file\s?names|working\s+on|hostname|session\s+\w+|prompts?)\b[^\n]{0,80}\bto\s+<?[`\"']?https?://"
            ),
            (
                r"\bcurl\b[^\n]{0,200}\$\{?\w*(?:KEY|TOKEN|SECRET|PASSWORD)\w*\}?[^\n]{0,60}\$\{?\w*(?:KEY|TOKEN|SECRET"
                r"|PASSWORD)"
            ),
            r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\s]{1,200}[?&]\w{1,30}=\$?\{",
            (
                r"(?:--post-file[\s=]|(?:-d|--data(?:-\w+)?|-F|--form)\s+[\"']?(?:\w+=)?@)[\"']?(?:\.env\b|~|/home|/etc"
                r"|\$HOME|\S{0,60}(?:secret|token|cred|\.pem|id_rsa))|[\"'](?:-F|-T|-d)[\"']\s*,[^\n]{0,40}@"
            ),
            _same_sentence(
                r"\b(?:put|write|include|add|encode|embed|append|insert|place)\b",
                _SECRETS,
                r"\b(?:branch\s+name|commit\s+\w+|title|comment|file\s?name|issue|pull\s+request|changelog)\b",
            ),
            (
                r"\b(?:rclone\s+(?:copy|sync|move)|aws\s+s3\s+(?:cp|sync)|gsutil\s+(?:-m\s+)?(?:cp|rsync)|azcopy\s+copy)"
                r"\s+(?:-\S+\s+)*[\"']?(?:~|\$HOME|/home|/etc|/Users|/root)"
            ),
            _near(
                r"https?://",
                r"\b(?:what|text|words)\s+(?:that\s+)?(?:the\s+)?(?:user|human|person)\s+(?:wrote|said"
                r"|typed|asked|entered|sent)\b",
                200,
            ),
            r"(?:glob\.glob|rglob|os\.walk|readdir\w*)\([\s\S]{0,300}?(?:requests\.post|httpx\.post|axios\.post)\(",
            r"\.read\(\)\s+for\s[\s\S]{0,200}?(?:requests\.post|httpx\.post|axios\.post|urlopen)\(",
            (
                r"\be-?mail\w*\b[^.\n]{0,40}\b(?:chat|conversation|transcript|documents?|attachments?|history"
                r"|logs?|source\s+code)\b[^.\n]{0,60}\bto\s+\S{1,60}@\w"
            ),
            _same_sentence(
                r"\b(?:post|put|upload|publish|share|paste|copy|attach)\w*\b",
                r"(?:environment\s+file|\.env\b|secrets?|credentials|api\s+keys?|tokens?|config\w*\s+files?)",
                r"\bpublic\s+(?:gist|issue|repository|repo|paste|page|channel|comment)",
            ),
            (
                r"(?:document\.cookie|localStorage|sessionStorage)[\s\S]{0,200}?(?:sendBeacon|fetch\(|XMLHttp"
                r"|\.src\s*=)|(?:sendBeacon|fetch\(|XMLHttp|\.src\s*=)[\s\S]{0,120}?(?:document\.cookie"
                r"|localStorage\.getItem|sessionStorage\.getItem)"
            ),
            r"\bcurl\b[^\n]{0,80}(?:-T|--upload-file)[\s=]+[\"']?[/~$]",
            _near(
                r"(?:pyperclip\.paste|pbpaste|xclip\s+-o|ImageGrab\.grab|screencapture\s|pyautogui\.screenshot"
                r"|pynput|keyboard\.on_press)",
                _SENDS,
                400,
            ),
            r"storbinary\(|storlines\(",
            rf"{_SENDS}[\s\S]{{0,200}}?{_IDENTIFIES}",
            rf"{_IDENTIFIES}[\s\S]{{0,200}}?{_SENDS}",
            rf"{_SENDS}[\s\S]{{0,200}}?\)\.environ\b",
            rf"\b(?:scp|rsync|sftp)\b[^\n]{{0,120}}@{_PUBLIC_IP}",
            (
                r"https?://\S{1,200}[?&]\w{1,30}=[`\"']?\s*(?:<|and\b|followed|then\b|plus\b)[^\n]{0,80}"
                r"\b(?:user|conversation|chat|question|summary|message|prompt|reply|answer)\b"
            ),
            r"\bgit\s+config\s[^\n]{0,40}url\.[^\n]{0,80}insteadOf\b(?![^\n]{0,20}git@)",
            (
                r"\b(?:npm|yarn|pnpm)\s+config\s+set\s+registry\s+https?://(?!registry\.npmjs)\S"
                r"|\bpip\d?\s+config\s+set\s+\S*index-url\s|>>\s*/etc/hosts\b"
            ),
            r"\b(?:always|every|each)\b[^.\n]{0,20}\b(?:cc|bcc)\b",
            (
                r"https?://\S{1,200}\s[^.\n]{0,60}(?:followed\s+by|append\w*|containing|plus|with)\s"
                r"[^.\n]{0,60}(?:user(?:'s)?\s+(?:last\s+|latest\s+)?(?:message|prompt|input|request)"
                r"|conversation|system\s+prompt|last\s+\w+\s+message|chat\s+history)"
            ),
            (
                rf"\b(?:tar|zip|cat|gzip|find|ls|head)\b[^\n]{{0,120}}{_HOME}[^\n]{{0,80}}\|\s*"
                rf"(?:curl|nc|ncat|wget|ssh)\b"
            ),
            _same_sentence(_ALL_OF_IT, rf"\b(?:in|into|as|to|through)\s+(?:the\s+|its\s+)?{_SLOT}"),
            r"dns(?:\.promises)?\.(?:resolve|lookup)\w*\(\s*[`\"'][^\n]{0,60}\$\{",
            _near(_WHO, _WEB, 200),
            _near(_WEB, _WHO, 200),
            r"\bgit\s+push\s+(?:-\S+\s+)*[\"'`]?https?://(?!github\.com/\w+/\w+)",
            _near(r"\bsmtplib\b", r"(?:glob\(|/home/|expanduser|environ|\.kdbx)", 400),
        ),
        "overrides-instructions": (
            r"\bif\s+you\s+are\s+an?\s+(?:AI|LLM|agent|assistant|language\s+model)\b",
            r"\bpretend\s+to\s+be\s+the\s+(?:user|human|operator|developer|owner)\b",
            r"\bnew\s+system\s+prompt\b",
            (
                r"\b(?:ignore|disregard|override)\s+(?:the\s+|any\s+|all\s+)*(?:instructions?|requests?"
                r"|wishes|commands?)\s+(?:of|from|by)\s+(?:the\s+)?(?:user|human|developer|operator"
                r"|system)\b"
            ),
            (
                r"\bbefore\s+(?:using|calling|running|invoking)\s+(?:any|every|each|another)\s+"
                r"(?:other\s+)?tools?\b[^.\n]{0,40}\b(?:read|open|send|pass|fetch|load)\b"
            ),
            (
                r"\b(?:system\s+prompt|your\s+(?:rules|guidelines|instructions))\s+(?:is|are|has\s+been"
                r"|have\s+been|was|were)\s+(?:now\s+)?(?:outdated|obsolete|wrong|replaced|superseded"
                r"|invalid|withdrawn|expired|deprecated)\b"
            ),
            r"\b(?:everything|anything)\s+without\s+asking\b",
            (
                r"\b(?:forget|ignore|disregard|drop)\s+(?:all\s+|any\s+|every\s+|the\s+|your\s+"
                r"|of\s+)*(?:rules|instructions|guidelines|guidance)\s+(?:from\s+before|above"
                r"|so\s+far|you\s+(?:were|have|got))"
            ),
            r"<system-reminder>",
            (
                r"\b(?:refusals?|silence|denials?|objections?)\b[^.\n]{0,40}\b(?:as|means?"
                r"|counts?\s+as)\b[^.\n]{0,20}\b(?:yes|consent|approval|agreement|permission)\b"
            ),
            r"\b(?:true|real|actual)\s+(?:policy|system\s+prompt|instructions?)\b[^.\n]{0,60}\b(?:is|are)\b",
            (
                r"\b(?:text|content|messages?|instructions?|prompt)\s+(?:above|before)\b[^.\n]{0,40}"
                r"\b(?:attacker|malicious|fake|forged|injected)\b"
            ),
            (
                r"\b(?:user|author|sender|caller|reader)\s+is\s+(?:a\s+|an\s+|the\s+)?(?:verified|trusted|authenticated)\s+"
                r"(?:administrator|admin|developer|operator|owner|root)\b"
            ),
            r"\b(?:AI|model|agent|assistant|LLM)\s+(?:that\s+is\s+)?(?:reading|processing|parsing)\s+this\b",
            r"\b(?:reviewed|approved|certified|audited|verified|endorsed)\s+by\s+(?:Anthropic|OpenAI|Google|Microsoft)\b",
            r"\b(?:comply|agree)\s+with\s+(?:everything|all|any\s+request|whatever)\b",
            (
                r"<!--[^>]{0,80}?\b(?:AI|LLM|assistants?|agents?|language\s+models?)\b[^>]{0,40}?\b(?:must|should|shall|need"
                r"\s+to|have\s+to)\b"
            ),
            (
                r"\byou\s+are\s+no\s+longer\s+(?:Claude|ChatGPT|GPT|Gemini|Copilot|an?\s+(?:AI\s+)?assistant|bound|restricted"
                r"|limited|required)\b"
            ),
            r"\b(?:agent|assistant|model|AI|bot)\s+(?:without|with\s+no)\s+(?:any\s+)?(?:limits|restrictions|rules|filters)",
            (
                r"\bbefore\s+(?:any|every|each|all)\s+(?:other\s+)?tool\s*(?:calls?|uses?|invocations?|s)?\b[^.\n]{0,20}\b"
                r"(?:call|run|execute|invoke|send)\b"
            ),
            r"\b(?:user|human|operator)\s+has\s+already\s+(?:approved|agreed|consented)\b",
            (
                r"\b(?:priority|precedence|authority)\s+(?:than|over)\s+(?:the\s+|any\s+|all\s+|your\s+|every\s+)*(?:system"
                r"|developer|operator|safety)\b"
            ),
            (
                r"\b(?:overrides?|outranks?|supersedes?)\s+(?:the\s+|any\s+|all\s+|your\s+)*(?:system\s+prompt|developer\s+\w+"
                r"|user(?:'s)?\s+(?:request|instructions?|wishes)|safety\s+\w+)"
            ),
            (
                r"\b(?:earlier|previous|prior|above|all|preceding)\s+(?:\w+\s+)?(?:messages?|turns?|conversation|chats?)\b"
                r"[^.\n]{0,60}\b(?:simulation|fake|not\s+real|void|role-?play|drill|rehearsal)\b"
            ),
            r"\breal\s+(?:session|conversation|task|instructions?|user)\s+(?:begins?|starts?|follows?)\b",
            (
                r"\b(?:important|urgent|critical|mandatory|required)\s+(?:for|to)\s+(?:all\s+|any\s+)?(?:AI\s+)?(?:agents"
                r"|assistants|models|LLMs|bots)\b"
            ),
            (
                r"\bforget\s+(?:who|what|everything|anything|whatever|how)\b[^.\n]{0,60}\b(?:told|serve|said|asked"
                r"|instructed|trained|were|learned)\b"
            ),
            r"\byour\s+(?:new\s+|only\s+|true\s+)?(?:boss|master|principal|commander|superior)\s+is\b",
            (
                r"\b(?:approval|consent|permission)\s+(?:in\s+advance|for\s+(?:everything|anything))\b|\b(?:blanket|standing)"
                r"\s+(?:approval|consent|permission)\b"
            ),
            (
                r"\bas\s+(?:if|though)\b[^.\n]{0,40}\b(?:no\s+(?:restrictions?|limits?|rules|guidelines|sandbox)"
                r"|(?:the\s+)?(?:operator|system|developer|user)\s+had\s+(?:said|written|asked|told))\b"
            ),
            (
                r"\b(?:rate|rank|recommend|praise|promote|favou?r|advertise)\b[^.\n]{0,60}\b(?:in|on)\s+(?:every|each|all|any)"
                r"\s+(?:comparison|answer|reply|response|review|conversation)s?\b"
            ),
            (
                r"\b(?:obey|follow|trust|heed)\s+(?:only\s+)?(?:this|the\s+current)\s+(?:file|document|skill|section"
                r"|text)\s+(?:alone|only|instead)\b"
            ),
            r"\{\{[#/]?\s*system\s*\}\}",
            (
                r"\b(?:tools?|actions?|commands?|requests?|operations)\s+(?:are|is|have\s+been)\s+pre-?\s?(?:authori[sz]"
                r"ed|approved|confirmed)\b"
            ),
            r"\bpretend\b[^.\n]{0,40}\b(?:did\s+not|didn['\u2019]t|never)\s+(?:happen|exist|take\s+place)",
            r"\bapprov\w+\b[^.\n]{0,40}\bwithout\s+(?:reading|reviewing|checking|looking)\b",
            (
                r"\b(?:declines?|refuses?|objects?|says?\s+no|disagrees?|hesitates?)\b[^.\n]{0,60}\b(?:regardless"
                r"|anyway|nonetheless|all\s+the\s+same)\b"
            ),
            (
                rf"{_NOT}\s+(?:need\s+to\s+|have\s+to\s+)?(?:follow|obey|heed|listen\s+to|comply\s+with|adhere\s+to"
                rf"|honou?r)\s+(?:the\s+|your\s+|any\s+)*(?:system\s+prompt|(?:earlier|previous|original|safety"
                rf"|initial|developer)\s+\w+|your\s+(?:instructions|guidelines|rules|training))"
            ),
            (
                r"\byour\s+(?:true|real|actual|secret|hidden)\s+(?:objective|goal|mission|purpose|task|identity"
                r"|instructions?|role)\b"
            ),
            (
                r"\byour\s+(?:previous|old|former|earlier|current)\s+(?:role|persona|identity|instructions?)\s+"
                r"(?:ends?|is\s+over|are\s+over|expires?|stops?)\b"
            ),
            (
                r"<(?:system|admin|operator|developer)>\s*[A-Z][^<\n]{0,200}\b(?:approve|skip|must|enabled|allowed"
                r"|confirm|permission|execute|ignore)"
            ),
            (
                r"\b(?:attention|note|message|notice|reminder|instructions?)\s*,?\s+(?:to\s+|for\s+)?(?:all\s+|any\s+"
                r"|every\s+|the\s+)?(?:AIs?|LLMs?|language\s+models?)\b\s*(?:agents?|assistants?|models?)?"
                r"(?:\s+reading\s+this)?\s*[:,.!-]"
            ),
            (
                r"\b(?:you|bot|assistant|AI)\b[^.\n]{0,80}\b(?:no|without(?:\s+any)?|free\s+of|not\s+bound\s+by)\s+"
                r"(?:content\s+polic\w+|ethical\s+\w+|moral\s+\w+|safety\s+(?:rules|filters|limits|guidelines)"
                r"|guardrails|censorship)"
            ),
            r"\bnever\s+(?:declines?|refuses?|says?\s+no)\b(?!\s+to\b)",
            _same_sentence(_RULES, _GIVEN_BEFORE, _VOID, letters=60),
            _same_sentence(_GIVEN_BEFORE, _RULES, _VOID, letters=60),
            _same_sentence(r"\basked\s+for", _VOID, letters=40),
            (
                r"(?:treat|regard|consider)\s+(?:it|this|these|the\s+following)\b[^.\n]{0,40}\b(?:coming|com"
                r"es?|issued|written|sent)\s+(?:from|by)\s+(?:your|the)\s+(?:operator|developer|system|owner"
                r"|administrator|creator|maker)"
            ),
            (
                r"\byou\s+(?:have\s+been|are|were)\s+(?:now\s+)?(?:granted|given|in|switched\s+to|running\s+in)"
                r"\s+(?:an?\s+|the\s+)?(?:administrator|admin|root|god|developer|maintenance|unrestricted|debug"
                r"|privileged|elevated)\s+(?:mode|access|rights|privileges|permissions)"
            ),
            (
                r"(?:confirmation|approval|permission|safety|consent)\s+(?:\w+\s+)?(?:no\s+longer\s+appl\w+"
                r"|(?:is|are)\s+(?:not\s+needed|waived|off|suspended|unnecessary))"
            ),
            r"(?-i:\bEND\s+OF\s+(?:SKILL|DOCUMENT|FILE|INSTRUCTIONS|CONTEXT|PROMPT|INPUT)\b)",
            r"[\[({<]{1,3}\s*(?-i:SYSTEM|ADMIN|OPERATOR|DEVELOPER)\s*(?:NOTE|MESSAGE|PROMPT)?\s*[:\]]",
            r"(?:^|\n)(?-i:Human):[^\n]{1,300}\n+(?-i:Assistant):",
            (
                rf"\b(?:replace|swap|substitute|change|alter)\b[^.\n]{{0,40}}{_PAYMENT}[^.\n]{{0,60}}\b(?:with"
                rf"|to|by|for)\b"
            ),
        ),
        "hides-from-user": (
            rf"{_NOT}\s+mention\s+(?:this|it|that)\s*(?:[.!\"']|$|\n)",
            (
                rf"\b(?:under\s+no\s+circumstances|in\s+no\s+case|at\s+no\s+time|by\s+no\s+means)\b"
                rf"[^.\n]{{0,40}}\b{_PEOPLE}\b[^.\n]{{0,20}}\b(?:find\s+out|learn|know|see|notice"
                rf"|hear|be\s+told)\b"
            ),
            rf"{_NOT}\s+(?:list|name|mention|cite|credit)\s+this\s+(?:skill|tool|plugin|step|file)\b",
            rf"{_NOT}\s+(?:mention|say|admit|note)\s+that\s+(?:you|it\s+was|this\s+was)\b",
            r"\bnever\s+mention\s+(?:it|this|that|them)\b",
            (
                r"\b(?:hide|conceal|erase)\b[^.\n]{0,60}\bfrom\s+(?:the\s+|any\s+|your\s+|all\s+)*(?:logs?|history"
                r"|audit)\b"
            ),
            r"\bwithout\s+asking\s+(?:for\s+)?(?:permission|confirmation|approval|consent|the\s+user|anyone)\b",
            (
                r"\b(?:leave|keep|omit|strip)\b[^.\n]{0,60}\b(?:out\s+of|from)\s+(?:what|anything|everything)\s+you\s+(?:show"
                r"|tell|say|write|report|print)\b"
            ),
            (
                rf"{_NOT}\s+(?:ever\s+)?(?:reveal|disclose|divulge|quote|repeat|expose)\s+(?:these|this|your|any\s+of"
                rf"\s+(?:these|this))\s+(?:\w+\s+)?(?:lines?|instructions?|prompts?|section|rules?|directives?)"
            ),
            r"\b(?:write|say|state|report|claim)\s+that\s+(?:all\s+)?(?:the\s+)?(?:tests?|checks?)\s+pass",
            r"\bkeep\s+(?:quiet|silent|mum)\b|\bsay\s+nothing\s+(?:about|of)\s+(?:this|it|these|that)\b",
            (
                rf"\bwithout\s+(?:the\s+|your\s+|any\s+)?{_PEOPLE}(?:['\u2019]s)?\s+(?:knowing|noticing|seeing"
                rf"|realis\w+|realiz\w+|being\s+(?:told|aware|informed|asked))\b"
            ),
            rf"\bwould\s+(?:only|just)\s+(?:confuse|worry|alarm|upset|annoy|distract)\s+(?:the\s+)?{_PEOPLE}\b",
            (
                r"\b(?:when|if|should)\s+(?:\w+\s+){0,3}?(?:asked|questioned|challenged|asks?)\b[^.\n]{0,60}\b"
                r"(?:answer|say|reply|respond|claim|state|insist|tell)\w*\s+(?:them\s+)?(?:that\s+)?[^.\n]{0,30}\b"
                r"(?:safe|clean|audited|harmless|verified|official|nothing|routine)\b"
            ),
            (
                rf"{_PEOPLE}\b[^.\n]{{0,40}}{_NOT}\s+(?:learn|find\s+out|discover|realise|realize|notice|know"
                rf"|see|hear)\b[^.\n]{{0,30}}\b(?:this|that|about|of)\b"
            ),
            r"\bleave\s+no\s+(?:trace|record|mention|sign|evidence)s?\b",
            (
                r"\b(?:leave|keep)\s+(?:that|this|it)\s+out\s+of\s+(?:your|the|any)\s+(?:summary|report|answer"
                r"|reply|response|output|log|diff|commit)"
            ),
            (
                rf"{_NOT}\s+(?:have\s+to\s+|need\s+to\s+)?wait\s+for\s+(?:the\s+)?{_PEOPLE}(?:['\u2019]s)?\s+(?:ok"
                rf"|okay|consent|confirmation|approval|permission|answer)"
            ),
            r"\breport\s+(?:a\s+)?success\b[^.\n]{0,30}\b(?:even|regardless|anyway|no\s+matter|whether)\b",
        ),
        "unverified-package": (
            (
                r"\b(?:pip3?|uv|pipx|uvx)\b[^\n]{0,60}git\+https?://(?!(?:www\.)?(?:github|gitlab|bitbucket|codeberg"
                r"|huggingface)\.)"
            ),
            r"index-url[\s=,\"']{1,8}http://(?!localhost|127\.)",
        ),
        "removes-safeguards": (
            r"/etc/sudoers(?:\.d)?\b[^\n]{0,80}(?:>>|tee|write|append)|(?:>>|tee\s+-a)\s*/etc/sudoers",
            (
                r"\bskip\s+(?:all\s+|any\s+|every\s+)+(?:\w+\s+)?(?:confirmations?|approvals?|permission\s+\w+"
                r"|safety\s+\w+|security\s+\w+|consent)\b"
            ),
            r"\b(?:enabled?|turn\w*\s+on|activate)\s+(?:the\s+)?auto-?\s?(?:approv\w+|accept\w*|confirm\w*)\b",
        ),
        "remote-instructions": (
            (
                r"https?://\S{1,200}[^.\n]{0,60}\b(?:carry\s+out|perform|apply|act\s+on|execute|obey)\b"
                r"[^.\n]{0,40}\b(?:commands?|lines|rules|instructions?)\b"
            ),
            (
                r"https?://\S{1,200}[^\n]{0,80}\b(?:is|are|be|must\s+be)\s+(?:to\s+be\s+)?"
                r"(?:followed|obeyed|executed|carried\s+out)\b"
            ),
            (
                r"https?://\S{1,200}[^.\n]{0,60}\b(?:do|follow|carry\s+out|execute|perform|obey)\b[^.\n]{0,30}\b"
                r"(?:what|whatever|exactly|everything)\b"
            ),
            (
                r"https?://\S{1,200}[\s\S]{0,120}?\b(?:read|open|load|fetch|visit)\b[^.\n]{0,40}\b(?:page|url|link"
                r"|address|document|it)\b[^.\n]{0,60}\b(?:treat|follow|as\s+part\s+of|as\s+if|obey|authoritative"
                r"|overrides?)\b"
            ),
            (
                r"https?://\S{1,200}[^.\n]{0,60}\b(?:carry\s+out|perform|apply|act\s+on|execute|obey|comply\s+with)\b"
                r"[^.\n]{0,40}\b(?:every|each|all|whatever|what|its|it)\b"
            ),
        ),
        "remote-control": (
            r"\bssh\s[^\n]{0,80}-\w*R\s*\S{0,20}\d+:\S",
            r"\b(?:chisel|frpc|gost)\s+(?:client|-c)\b|\bngrok\s+(?:tcp|ssh)\b",
            r"docker\s+run\b[^\n]{0,120}(?:-v\s+/:|--pid[= ]host)",
        ),
        "stays-on-machine": (
            (
                r"\b(?:echo|printf)\s[^\n]{0,160}(?:/tmp/|/var/tmp|/dev/shm|nohup)[^\n]{0,60}>>?\s*"
                r"(?:~|\$HOME)/\.(?:bash|zsh|profile|zprofile)"
            ),
            r"\bsystemctl\s+(?:--\w+\s+)*enable\s+(?:--now\s+)?(?:/tmp|/var/tmp|~|/home)",
            r"\b(?:cp|mv|ln|tee|copy)\b[^\n]{0,60}\.git/hooks/\w",
            r"\btee\s+(?:-a\s+)?/etc/(?:cron|profile|rc\.local|ld\.so|sudoers|hosts|init\.d)",
            r"(?-i:\bPATH)=[\"']?(?:/tmp|/var/tmp|/dev/shm)\b",
            (
                r"\b(?:put|copy|place|save|duplicate)\b[^.\n]{0,60}\b(?:this|these|it|itself)\b[^\n]{0,40}(?:~|\$HOME)/\."
                r"(?:claude|codex|cursor|gemini|agents|config)\b[^\n]{0,100}\b(?:next\s+time|every\s+session|other\s+projects"
                r"|stays|permanent|survives?)\b"
            ),
            (
                r"(?:writeFile\w*|write_text|open|copy\w*)\([^\n]{0,100}(?:systemd/user|/etc/cron|autostart|LaunchAgents"
                r"|rc\.local|init\.d)"
            ),
            (
                r"\b(?:whenever|every\s+time|each\s+time|always)\b[^.\n]{0,80}\b(?:load|activate)\s+this\s+(?:skill|tool"
                r"|plugin)\b[^.\n]{0,60}\b(?:first|before|never)\b"
            ),
            (
                r"\b(?:PROMPT_COMMAND|LD_PRELOAD|DYLD_INSERT_LIBRARIES|PYTHONSTARTUP|BASH_ENV)=[^\n]{0,80}"
                r"(?:>>|/tmp|~/|\$HOME)|NODE_OPTIONS[\"']?\s*[=:]\s*[\"']?--require\b"
            ),
            r"[\"']runOn[\"']\s*:\s*[\"']folderOpen[\"']",
            r"\b(?:Register-ScheduledTask|New-Service\s+-Name|sc(?:\.exe)?\s+create)\b",
            r"\b(?:useradd|adduser|usermod)\b[^\n]{0,60}(?:-aG|--groups|-G)\s*(?:sudo|wheel|admin|docker)",
            r"alias\s+[\"'\\]?(?:sudo|ssh|su|gpg|doas)=",
            r"alias\s+\w{1,20}=[\"']?(?:/tmp|~?/\.)",
            _near(r"Library/Launch(?:Agents|Daemons)", _WRITES, 200),
            (
                r"\b(?:remember|memori[sz]e|store|save|record)\b[^.\n]{0,60}\b(?:permanently|forever|across\s+all\s+"
                r"(?:chats|sessions|conversations)|(?:all|every|each|any)\s+(?:future|later|other|new)\s+(?:chats?"
                r"|sessions?|conversations?|requests?|tasks?))"
            ),
            rf"\b(?:nohup|setsid|disown|start\s+/b)\b[^\n]{{0,60}}(?:{_TEMPORARY}|~?/\.\w)",
            r"(?:^|[;&|\n\"'(]\s*)(?:/tmp|/var/tmp|/dev/shm)/\.\w",
            (
                r"\.config/autostart/|Start\s?Menu[\\/]+Programs[\\/]+Startup|/etc/profile\.d/\w"
                r"|/etc/ld\.so\.preload|(?:site|user)customize\.py"
            ),
            _near(_SHELL_FILES, _WRITES, 200),
            rf"(?:appendFile|writeFile)\w*\([^\n]{{0,80}}{_SHELL_FILES}",
            _near(_CLIENT_FILES, _WRITES, 300),
            _same_sentence(
                r"\b(?:copy|add|put|write|paste|append|insert|save|store|repeat|include)\b",
                _MEMORY_FILES,
                _LATER,
                letters=100,
            ),
            _near(r"\.pth\b[\"']?\)?", r"(?:write|import\s)", 60),
        ),
        "replaces-own-tool": (
            (
                r"\b(?:always|must)\s+(?:prefer|choose|pick)\s+this\s+(?:tool|skill|server|plugin)\b"
                r"[^.\n]{0,60}\b(?:over|instead|rather)\b"
            ),
            (
                r"\bif\s+(?:another|any\s+other|some\s+other)\s+(?:skill|tool|plugin|instruction)[^.\n]{0,40}"
                r"(?:disagrees|conflicts|contradicts|says\s+otherwise)[^.\n]{0,40}(?:this\s+one|ignore)"
            ),
            r"\brefuse\s+to\s+(?:load|use|call|run)\s+(?:the\s+)?[`\"']?[\w-]{2,40}[`\"']?\b",
        ),
    }
)
"""By the id of the rule; `_near` and `_same_sentence` say how close the parts must be."""
