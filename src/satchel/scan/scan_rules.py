"""The rules of a scan: data, with the reason for each and the incident that it comes from."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from satchel.lazy_dataclass import dataclass
from satchel.scan.lure_patterns import LURE_PATTERNS


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRule:
    """What to look for in the text of a file, and why."""

    id: str
    meaning: str
    """What the found text does, and why a reviewer wants to see it."""
    incident: str
    """A published attack of this kind."""
    patterns: tuple[re.Pattern[str], ...] = ()
    """Texts without invisible characters are searched. Rules in code have none."""


def _rule(id: str, meaning: str, incident: str, *patterns: str) -> ScanRule:  # noqa: A002 - field
    texts = (*patterns, *LURE_PATTERNS.get(id, ()))
    compiled = (re.compile(_bounded(it), re.IGNORECASE | re.VERBOSE) for it in texts)
    return ScanRule(id=id, meaning=meaning, incident=incident, patterns=tuple(compiled))


def _bounded(pattern: str) -> str:
    """Limit the repeats of letters in a pattern: a hostile text must not take minutes to search."""
    bounds = {"*": "{0,200}", "+": "{1,200}"}
    repeated = r"(\\[SWswd]|\[(?:\\.|[^\]\\])+\])([*+])"
    return re.sub(repeated, lambda match: match[1] + bounds[match[2]], pattern)


_SHELL = r"(?:sudo\s+(?:-\w+\s+)*)?(?:/[\w./-]{0,60}/)?(?:ba|z|da|k|fi)?sh\b"
_RUNNER = (
    rf"(?:{_SHELL}|(?:sudo\s+)?(?:python3?|perl|ruby|node|php|osascript|pwsh|powershell|iex)\b)"
)
_GET = r"\b(?:curl|wget|aria2c|iwr|irm|invoke-webrequest|invoke-restmethod)\b"
_ANY = r"[^\n]{0,300}?"
_NEAR = r"[^\n]{0,120}?"
_USER = (
    r"(?:the\s+|your\s+|any\s+)?(?:users?|humans?|operators?|developers?|owners?"
    r"|person|anyone|anybody)"
)
_PLACES_OF_SECRETS = r"""(?:
    \.ssh(?:/|\b(?!\.)) | \bid_(?:rsa|ed25519|ecdsa)\b |
    ~/\.aws\b | \.aws/ | \.config/gcloud | application_default_credentials |
    \.kube/config | \.azure/ | \.docker/config\.json | \.netrc\b | \.git-credentials\b |
    \.pypirc\b | \.gnupg\b | \.config/gh/hosts | \.bash_history | \.zsh_history |
    \.claude/\.credentials | \.codex/auth\.json | /etc/shadow\b | /proc/self/environ |
    Login\s?Data\b | (?:Chrome|Chromium|Firefox|Brave|Edge)[^\n]{0,60}(?:Cookies|Web\s?Data)\b |
    Library/Keychains |
    login\.keychain | logins\.json | key4\.db |
    wallet\.dat | \.electrum | \.ethereum/keystore | \.config/solana/id\.json |
    (?:Local|Session)\s(?:State|Storage)[/\\] | seed\s+phrases? | mnemonic\s+phrases?
)"""
_ENVIRONMENT = r"""(?:
    os\.environ(?!\s*[\[.]\s*(?:get)?\(?["']\w+["']) | dict\(os\.environ\) |
    JSON\.stringify\(process\.env | process\.env\s*[,)}] | \bprintenv\b | \$\(\s*env\s*\) |
    `env` | \benv\s*\| | ENV\.to_h | getenv\(\)
)"""
_DROPS = r"""(?:
    webhook\.site | requestbin | pipedream\.net | \.ngrok(?:-free)?\.(?:io|app|dev) |
    discord(?:app)?\.com/api/webhooks/ | api\.telegram\.org/bot | pastebin\.com/api |
    transfer\.sh | burpcollaborator\.net | oastify\.com | \boast\.(?:fun|me|pro|live|site)\b |
    interact\.sh | requestcatcher\.com | beeceptor\.com | \.trycloudflare\.com | dnslog\.cn |
    \bfile\.io\b | 0x0\.st | bashupload\.com | paste\.rs | termbin\.com | glot\.io/snippets |
    rentry\.co/\w+/raw
)"""
_OUT = (
    r"(?:curl|wget|\bnc\b|ncat|fetch\(|requests?\.(?:post|put|get)|httpx\.(?:post"
    r"|put|get)|urlopen|axios|Invoke-RestMethod|scp\s|rsync\s|sendBeacon|socket\.)"
)
_DECODE = r"""(?:
    b64decode | base64\.decode | atob\s*\( | fromhex | unhexlify | codecs\.decode |
    zlib\.decompress | marshal\.loads | Buffer\.from\( | FromBase64String | fromCharCode |
    urlsafe_b64decode | a85decode | b85decode | rot_?13 | bytes\(\[ | ''\.join\(\s*chr |
    \[::-1\] | decompress\(
)"""
_SEND_WORDS = (
    r"(?:send|upload|post|e-?mail|transmit|exfiltrate|forward|submit|share|report"
    r"|copy|append|attach|include|encode|paste|embed|put|write|leak|pass)(?:e?s|ing)?"
)
_READ_WORDS = (
    r"(?:read|cat|open|print|collect|gather|find|grab|steal|harvest|dump|extract"
    r"|archive|tar|zip|look\s+(?:in|for)|load|type|less|head|base64|get-content"
    r"|cp|copy|fetch|search|list|view|scan|show|display|quote)(?:e?s|ing)?"
)

SCAN_RULES: Mapping[str, ScanRule] = MappingProxyType(
    {
        rule.id: rule
        for rule in (
            _rule(
                "hidden-characters",
                "characters that a person cannot see but a model reads, or that reorder text",
                "Rules File Backdoor in Cursor and Copilot, 2025; Trojan Source, CVE-2021-42574",
            ),
            _rule(
                "mixed-scripts",
                "a word of letters that look alike but come from several alphabets",
                "Look-alike package and skill names, such as a Cyrillic i in 'git-commit'",
            ),
            _rule(
                "binary-file",
                "a file that is no text, such as a program or an archive, or has special rights",
                "Compiled stealers in skills of ClawHub, 2026",
            ),
            _rule(
                "leaves-folder",
                "a link, hard or symbolic, to a file outside the folder",
                "CVE-2025-53109 and -53110: links out of the folder of an MCP server",
            ),
            _rule(
                "refused-skill",
                "a SKILL.md that Satchel refuses; other clients may read something else in it",
                "Alias bombs, and second names that replace another skill's",
            ),
            _rule(
                "not-read",
                "a file or folder that could not be searched whole",
                "Padding in front of a lure, so that scanners stop before it",
            ),
            _rule(
                "fetch-and-run",
                "text from the network is run without anybody having read it",
                "ClickFix instructions in skills of ClawHub, February 2026",
                rf"{_GET}{_ANY}\|\s*(?:tee\s+\S+\s*\|\s*)?{_RUNNER}",
                rf"{_RUNNER}\s+(?:-\w+\s+)*<\(\s*{_GET}",
                rf"(?:{_SHELL}\s+-\w*c|eval|source|\.)\s+[\"'`]?(?:\$\(|`|<\()\s*{_GET}",
                rf"\b(?:iex|invoke-expression)\b{_NEAR}(?:{_GET}|downloadstring|webclient)",
                rf"downloadstring\({_ANY}(?:iex|invoke-expression)",
                rf"(?:exec|eval|compile|new\s+Function)\s*\({_NEAR}(?:urlopen|requests?\.get"
                rf"|httpx\.get|fetch\()",
                rf"{_GET}{_ANY}(?:\s-o|\s-O|--output|>|-outfile)\s*([\w./~$-]{{3,}}){_ANY}(?:&&"
                rf"|;|\n)\s*(?:sudo\s+)?(?:chmod\s+(?:\+x|[0-7]{{3,4}})\s+\1{_ANY}(?:&&"
                rf"|;|\n)\s*)?(?:(?:nohup|exec|setsid)\s+)?(?:{_RUNNER}\s+)?(?:\./)?\1\b",
                rf"chmod\s+\+x\s+(/tmp/\S+|\./\.\S+|/dev/shm/\S+){_ANY}(?:&&|;|\n)\s*\1",
                r"\b(?:mshta|rundll32|regsvr32|certutil\s+-urlcache|bitsadmin)\b[^\n]{0,80}"
                r"https?://",
                rf"(?:subprocess\.\w+|os\.system|child_process|execSync|popen)\s*\(?{_NEAR}{_GET}{_NEAR}\|\s*{_RUNNER}",
                r"(?:https?['\"]?\)?\.get|fetch|urlopen|requests?\.get|httpx\.get|axios\.get)\s*\([\s\S]{0,250}?(?<![.\w])(?:eval"
                r"|exec)\s*\(",
                r"(?:iwr|irm|invoke-webrequest|curl)\b[^\n]{0,200}-outfile\s+([\w./~$:%\\-]{3,})[\s\S]{0,40}?(?:;"
                r"|\n)\s*(?:&|start-process|\.)\s*\1",
                r"(?:download|get|fetch)\b[^.\n]{0,80}https?://[^\s]{3,}[^.\n]{0,80}(?:and"
                r"|then|,)\s+(?:run|execute|launch|double-click)\s+(?:it|the\s+(?:installer"
                r"|file|binary|script|program|setup)|\S+\.(?:exe|msi|pkg|dmg|sh|bat|ps1|command))\b",
            ),
            _rule(
                "remote-instructions",
                "the model is told to follow text that can change after the review",
                "Skills that load their instructions from a paste site (ToxicSkills study, 2026)",
                r"(?:fetch|download|load|read|get|retrieve|pull|open|visit|curl)\b[^.\n]{0,60}"
                r"(?:instructions?|prompts?|rules|steps|commands?|directives|payload)"
                r"\b[^.\n]{0,30}(?:from|at)\s+<?[`\"'(]*https?://",
                r"(?:follow|obey|execute|run|apply|do)\s+(?:all\s+|any\s+|every\s+"
                r"|the\s+|whatever\s+)*(?:\w+\s+)?(?:instructions?|commands?|steps"
                r"|directives|it\s+says|prompts?)\b[^.\n]{0,40}(?:from|at|on|in"
                r"|behind)\s+(?:the\s+(?:page|url|file|link)\s+)?<?[`\"'(]*https?://",
                r"https?://\S+\s[^\n]{0,50}\b(?:and|then)\s+(?:follow"
                r"|obey|execute|run|do)\b[^.\n]{0,40}(?:instructions?|commands?"
                r"|whatever|everything|what\s+it\s+(?:says|returns)|the\s+(?:response"
                r"|output|result|answer))",
            ),
            _rule(
                "obfuscated-code",
                "code is hidden in data and run",
                "Shai-Hulud worm, 2025, and base64 droppers in skills of ClawHub, 2026",
                rf"(?:\bexec|\beval|new\s+Function|\bFunction|__import__\([^)]*\)\.\w+"
                rf"|os\.system|subprocess\.\w+|loads)\s*\({_NEAR}{_DECODE}",
                rf"(?:base64|openssl\s+(?:enc|base64)|xxd|uudecode|gunzip|zcat"
                rf"|tr|rev)\b{_NEAR}\|\s*{_RUNNER}",
                rf"{_RUNNER}\s+(?:-\w+\s+)*<\(\s*{_ANY}base64",
                rf"(?:{_SHELL}\s+-\w*c|eval)\s+[\"'`]?(?:\$\(|`){_NEAR}(?:base64"
                rf"|xxd|rev|printf\s+[\"']?\\x)",
                r"\b(?:powershell|pwsh)(?:\.exe)?\b[^\n]{0,80}\s-e(?:nc(?:odedcommand)?"
                r"|c)?\s+[\"']?[A-Za-z0-9+/=]{16,}",
                r"(?:exec|eval|spawn|getattr)\s*\([^\n]{0,80}(?:\\x[0-9a-f]{2}){4,}",
                r"getattr\s*\(\s*(?:__builtins__|__import__\(|builtins|os|sys\.modules)"
                r"\s*[^\n]{0,60}(?:\+|chr\(|join|\[::-1\])",
                r"__import__\s*\(\s*(?:[\"'][a-z]{1,6}[\"']\s*\+|chr\(|[^)\n]{0,40}(?:join"
                r"|decode|\[::-1\]))",
                r"(?:chr\(\d+\)\s*\+\s*){4,}",
                r"!!python/(?:object|name|module|apply)",
                r"(?:\bexec|\beval)\s*\([^\n]{0,40}\.join\s*\(\s*(?:map\s*\(\s*)?\[?\s*chr\b",
            ),
            _rule(
                "credential-access",
                "keys, tokens or passwords outside the project are read",
                "Malicious postmark-mcp and s1ngularity (Nx) packages, 2025",
                rf"\b{_READ_WORDS}\b[^.\n]{{0,80}}{_PLACES_OF_SECRETS}",
                rf"\b{_SEND_WORDS}\b[^.\n]{{0,80}}{_PLACES_OF_SECRETS}",
                rf"{_PLACES_OF_SECRETS}[^\n]{{0,80}}(?:\.read(?:_text|_bytes)?\("
                rf"|\|\s*(?:curl|nc|base64|wget|xargs)|{_SEND_WORDS}\b[^\n]{{0,30}}(?:to"
                rf"|in|as)\b)",
                rf"(?:open|Path|readFile(?:Sync)?|expanduser|read_text|join)\s*\([^\n]{{0,100}}{_PLACES_OF_SECRETS}",
                r"\bsecurity\s+(?:find-(?:generic|internet)-password|dump-keychain|export)\b",
                r"\b(?:secret-tool\s+(?:lookup|search)|cmdkey\s+/list|vaultcmd\s+/list"
                r"|lazagne)\b",
                r"(?:curl|wget|iwr|irm|get|urlopen|fetch|request)\b[^\n]{0,80}"
                r"(?:169\.254\.169\.254|metadata\.google\.internal/computeMetadata)",
                rf"\b{_READ_WORDS}\b[^.\n]{{0,60}}\bbrowser(?:'s)?\s+(?:saved\s+)?(?:cookies"
                rf"|passwords)",
                r"(?:google-chrome|Chrome|Chromium|Firefox|Brave|Edge)\b[^\n]{0,80}(?:Login\\?\s?Data"
                r"|Cookies\b(?=[\s\"'`])|logins\.json)",
                r"display\s+dialog\b[^\n]{0,160}(?:hidden\s+answer|password)|Get-Credential\b[^\n]{0,80}\|",
            ),
            _rule(
                "sends-data-out",
                "data of the machine or of the conversation leaves it",
                "Image links in Copilot (EchoLeak, CVE-2025-32711); the ToxicSkills study, 2026",
                rf"{_OUT}{_ANY}{_ENVIRONMENT}",
                r"\b(?:env|printenv|set)\s*\|\s*(?:curl|nc|ncat|wget|base64)\b",
                rf"{_ENVIRONMENT}{_ANY}\|\s*(?:curl|nc|ncat|wget|base64)\b",
                rf"{_ENVIRONMENT}[\s\S]{{0,200}}?(?:requests?\.(?:get|post|put)"
                rf"|httpx\.post|urlopen|fetch\(|axios\.post)",
                rf"(?:curl|wget|nc|ncat|scp|rsync|Invoke-RestMethod|irm|iwr)\b{_ANY}(?:-d"
                rf"|--data(?:-\w+)?|-F|--form|-T|--post-file=?|--upload-file|-Body)\s*[=\"']*\s*(?:\w+"
                rf"=)?(?:@|\$\(|`)\s*(?:<\s*)?(?:cat\s|env|printenv|base64|~|/etc"
                rf"|/home|\$HOME|history|tar\s|git\s+config|gh\s+auth|set\b)",
                rf"(?:\b{_SEND_WORDS}\b|{_OUT}|https?://)[^\n]{{0,120}}{_DROPS}",
                r"!\[[^\]]*\]\(\s*https?://[^)\s]*(?:\{\{?|\$\{?|<)\s*[A-Za-z_ ]*(?:secret"
                r"|key|token|data|conversation|history|summary|content|password"
                r"|context|message|env|base64|encoded)",
                r"\b(?:nslookup|dig|ping)\s[^\n]{0,60}\$[({]",
                rf"\b(?:{_SEND_WORDS}|summari[sz]e)\b[^.\n]{{0,80}}(?:conversation"
                rf"|chat\s+history|system\s+prompt|environment\s+variables?|env\s+vars?"
                rf"|api[\s_-]?keys?|credentials|passwords?|access\s+tokens?|secrets?"
                rf"|private\s+keys?|source\s+code|\.env\b)[^.\n]{{0,80}}(?:to|at"
                rf"|via|into)\s+(?:\S+\s+){{0,3}}?<?[`\"'(]*(?:https?://|ftp://"
                rf"|\w+@\w+\.\w+)",
                r"<img[^>]+src\s*=\s*[\"']https?://[^\"'>]*\{",
                r"\bBCC\b[^\n]{0,60}\w+@\w+\.\w+",
                r"(?:ANTHROPIC|OPENAI|GEMINI|AZURE_OPENAI|MISTRAL|GROQ)_(?:API_)?(?:BASE(?:_URL)?"
                r"|ENDPOINT)\s*[=:]\s*[\"'`]?https?://(?!localhost|127\.|0\.0\.0\.0|[\w.-]*(?:anthropic"
                r"|openai|azure|google|mistral|groq|deepseek|moonshot|bigmodel|openrouter"
                r"|example)\b)",
                r"\b(?:always|every|each|all)\b[^.\n]{0,60}\b(?:forward|send|copy|bcc|cc)\b[^\n]{0,60}\w@\w[\w.-]{1,60}\.\w"
                r"|\b(?:always|silently)\s+(?:forward|send|copy|bcc|cc)\b[^\n]{0,80}\w@\w[\w.-]{1,60}\.\w",
                rf"\b(?:gather|collect|dump|read|list|get|capture|find|look\s+up|take|extract)\b[^.\n]{{0,40}}(?:environment\s+variables"
                rf"|env\s+vars|credentials|(?:api|aws|access|ssh|private)[\s_-]keys?|secrets"
                rf"|tokens|passwords)\b[^.\n]{{0,60}}\b{_SEND_WORDS}\b[^.\n]{{0,60}}(?:https?://"
                rf"|\w@\w|commit|issue|comment|title|url|webhook|parameter|endpoint|server"
                rf"|pull\s+request)",
                r"https?://[^\s\"']{3,100}[\"']\s*(?:\+|\.\.|,)\s*(?:os\.environ|os\.getenv"
                r"|process\.env|getenv|ENV\[)",
                r"(?:gethostby\w+|getaddrinfo|resolve)\s*\([^\n]{0,100}(?:encode|hexlify|b32|b64)",
                r"!\[[^\]]*\]\(\s*https?://[^)\s]*[?&]\w+=[A-Z][A-Z_]{5,}",
                r"\b(?:curl|wget|iwr|irm)\b[^\n]{0,200}\$\(\s*(?:<\s*[~/.]|(?:cat|base64|env"
                r"|printenv|whoami|hostname|head|tail|grep|git\s+config)\b)[^\n]{0,80}\)",
                r"git\s+remote\s+add\b[^\n]{0,120}(?:&&|;|\n)\s*git\s+push\b|git\s+push\s+--mirror\b",
            ),
            _rule(
                "remote-control",
                "others can run commands on the machine, or use its processor",
                "Reverse shells in skills and MCP servers found in 2025 and 2026",
                r"/dev/(?:tcp|udp)/",
                r"\b(?:nc|ncat|netcat)\b[^\n]{0,60}\s-(?:\w*e|\w*c)\s+\S*sh\b",
                r"mkfifo\s[^\n]{0,80}(?:nc|ncat|openssl\s+s_client)\b",
                r"bash\s+-i\s*(?:>|<|2>)",
                r"socket\.(?:socket|create_connection)[\s\S]{0,400}(?:dup2|subprocess"
                r"|pty\.spawn|os\.system|exec\()",
                r"pty\.spawn\(\s*[\"']/bin/",
                r"socat\s[^\n]{0,80}exec:",
                r"\bnew\s+net\.Socket[\s\S]{0,300}(?:spawn|exec)",
                r"while\s+(?:True|1|true)[\s\S]{0,200}(?:exec|eval|os\.system"
                r"|subprocess\.\w+)\s*\([^\n]{0,80}(?:requests?\.get|urlopen|recv\()",
                r"socket[\s\S]{0,400}?/bin/(?:ba|z|da)?sh\b",
                r"stratum\+(?:tcp|ssl)://|\b(?:xmrig|minerd|cpuminer|cryptonight|nbminer)\b",
            ),
            _rule(
                "hides-from-user",
                "the model is told to keep something from the user, or not to ask",
                "Tool poisoning of MCP servers (WhatsApp MCP), 2025",
                rf"(?:do\s+not|don['\u2019]?t|never|must\s+not|should\s+not|without"
                rf"|avoid)\s+(?:ever\s+)?(?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?"
                rf"|notify(?:ing)?|warn(?:ing)?)\s+{_USER}\b(?!\s+to\b)",
                rf"(?:do\s+not|don['\u2019]?t|never|must\s+not|should\s+not|without"
                rf"|avoid)\s+(?:ever\s+)?(?:tell(?:ing)?|show(?:ing)?|reveal(?:ing)?"
                rf"|mention(?:ing)?|disclos(?:e|ing)|report(?:ing)?|explain(?:ing)?)\s+"
                rf"(?:this|it|that|these|any\s+of\s+this|the\s+\w+(?:\s+\w+)?|about\s+"
                rf"\w+)\s+to\s+{_USER}\b",
                rf"\b(?:hide|conceal|keep\s+(?:this|it|that)\s+(?:secret|hidden"
                rf"|quiet))\b[^.\n]{{0,40}}\bfrom\s+{_USER}\b",
                rf"(?:so\s+that\s+)?{_USER}\s+(?:must|should|will|wo)\s*(?:not"
                rf"|n['\u2019]t)\s+(?:ever\s+)?(?:know|notice|see|find\s+out|be\s+(?:told"
                rf"|informed|aware)|realize|suspect)\b",
                r"(?:secretly|covertly|surreptitiously)\s+(?:run|send|upload|execute"
                r"|copy|add|read|insert|include|install|collect|call|post|write"
                r"|append|modify)",
                r"(?:silently|quietly)\s+(?:send|upload|exfiltrate|collect|copy"
                r"|forward|transmit|post)\b",
                r"(?:do\s+not|don['\u2019]?t|never)\s+(?:mention|reveal|disclose"
                r"|talk\s+about|refer\s+to|acknowledge|output|log|discuss)\s+(?:this"
                r"|these|the|that|any\s+of\s+this)\s*(?:hidden|secret|step|instruction"
                r"|rule|section|behaviou?r|request|action|upload|message|comment"
                r"|note)s?\b",
                r"(?:without|no\s+need\s+for|skip)\s+(?:asking\s+(?:for\s+)?|requesting\s+"
                r"|any\s+|the\s+user(?:'s)?\s+|requiring\s+|seeking\s+)*(?:user(?:'s)?\s+)"
                r"(?:consent|knowledge|permission|awareness)",
                r"if\s+(?:the\s+|a\s+)?(?:user|human|anyone|they)\s+(?:asks?|inquires?|notices?"
                r"|questions?)[^.\n]{0,60}(?:say\s+(?:that\s+)?(?:you|it|this|nothing)|tell\s+them\s+(?:that\s+)?(?:you"
                r"|it|this|nothing)|deny|claim|pretend|lie\b|change\s+the\s+subject)",
                r"(?:do\s+not|don['\u2019]?t|never)\s+(?:mention|include|list|report|log)\s+(?:it"
                r"|this|that)\s+(?:in|to|anywhere|again)\b",
                r"<!--[^>]{0,200}?\b(?:AI|assistants?|LLMs?|language\s+models?|claude|copilot"
                r"|gemini)\b[^>]{0,200}?\b(?:run|execute|send|upload|fetch|ignore|do\s+not"
                r"|always|never)\b",
                r"(?:do\s+not|don['\u2019]?t|never|must\s+not|without)\s+ask(?:ing)?\s+(?:the\s+user\s+)?(?:for\s+)?(?:confirmation"
                r"|permission|approval|consent)\s+(?:before|when|to)\s+(?:delet|send|run|upload"
                r"|execut|remov|install|overwrit|purchas|pay|transfer)",
                r"\bbetween\s+(?:us|you\s+and\s+me)\b[^\n]{0,80}|(?:do\s+not|don['\u2019]?t"
                r"|never)\s+bring\s+(?:it|this|that)\s+up\b",
                rf"{_USER}[^.\n]{{0,40}}(?:does\s+not|doesn['\u2019]t|do\s+not|don['\u2019]t)\s+need\s+to\s+(?:(?:see"
                rf"|read)\s+(?:it|this)|know\s+(?:about|that)|be\s+told)\b",
            ),
            _rule(
                "overrides-instructions",
                "the text poses as the user or the system, or tells the model to drop its rules",
                "Prompt injection in skills and issues (GitHub MCP, 2025)",
                r"(?:ignore|disregard|forget|override|bypass|discard|drop)\s+(?:all\s+"
                r"|any\s+|every\s+|of\s+|the\s+|your\s+|my\s+|these\s+|its\s+"
                r"|other\s+)*(?:previous(?:ly)?|prior|above|earlier|preceding"
                r"|former|system|safety|original|existing|initial|developer|security)"
                r"\s+(?:\w+\s+)?(?:instructions?|prompts?|rules|guidelines|directives?"
                r"|policies|policy|guardrails?|constraints|guidance|context|messages?|restrictions"
                r"|training)",
                r"(?:ignore|disregard|forget)\s+(?:everything|all)\s+(?:you\s+(?:were"
                r"|have\s+been)\s+told|above|before|that\s+came\s+before|I\s+said)",
                r"<\|(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|>"
                r"|<<SYS>>|\[/?INST\]",
                r"</(?:available_skills|skill|skill_content|system|system-reminder"
                r"|instructions|tool_result|function_results)>\s*<",
                r"you\s+are\s+now\s+(?:in\s+)?(?:DAN\b|developer\s+mode|jailbroken"
                r"|unrestricted|god\s+mode|an?\s+unrestricted)",
                r"<(?:IMPORTANT|SYSTEM|ADMIN|CRITICAL|SECRET|system-reminder)>[\s\S]{0,300}"
                r"(?:before\s+(?:using|calling|any)|must|always|read|send|do\s+not)",
                r"(?:system|developer|admin(?:istrator)?|anthropic|openai)\s+(?:override"
                r"|message|notice|update|command)\s*:\s*\w+[^\n]{0,200}(?:ignore"
                r"|must|disable|comply|override|execute|run|send)",
                r"(?:from\s+now\s+on|henceforth)\b[^.\n]{0,60}(?:obey|comply|ignore"
                r"|no\s+restrictions|unrestricted|without\s+(?:limits|restrictions"
                r"|refus))",
                r"(?:act|behave|respond)\s+as\s+an?\s+(?:unrestricted|uncensored|unfiltered"
                r"|jailbroken|evil)\b|pretend\s+(?:that\s+)?(?:the\s+|there\s+(?:is|are|was"
                r"|were)\s+no\s+)(?:previous|system|earlier|safety|rules|restrictions)",
                r"follow\s+(?:any|all|whatever)\s+(?:\w+\s+)?instructions?\s+(?:it|they|contained"
                r"|inside|embedded|returned|found\s+in\s+(?:its|the\s+(?:response|output|page)))\b",
                r"from\s+now\s+on\b[^.\n]{0,80}(?:must\s+(?:include|contain|add|insert|append)"
                r"|(?:insert|append|embed)\s)",
                r"(?:safety|security)\s+(?:checks?|rules|filters?|policies|restrictions|guidelines)\s+(?:are"
                r"|is|have\s+been|has\s+been)\s+(?:now\s+)?(?:suspended|disabled|lifted|off"
                r"|removed|waived)",
                r"\bI\s+(?:hereby\s+)?(?:authori[sz]e|permit|allow|grant)\s+(?:you|this\s+\w+)\s+(?:permission\s+)?to\s+(?:skip"
                r"|bypass|ignore|override|disable)",
            ),
            _rule(
                "removes-safeguards",
                "protection, confirmation or logging is switched off",
                "s1ngularity (Nx), 2025: it started assistants with their permissions off",
                r"--(?:\w{1,20}-){0,3}dangerously-[\w-]{1,40}|--yolo\b|--trust-all-tools"
                r"|bypassPermissions",
                r"[\"']?(?:permissionMode|defaultMode|autoApprove|auto_approve"
                r"|chat\.tools\.autoApprove)[\"']?\s*[:=]\s*[\"']?(?:bypassPermissions"
                r"|true|\[\s*[\"']\*)",
                r"(?:disable|turn\s+off|deactivate|stop|kill|uninstall|exclude\s+\S+\s+"
                r"from)\s+(?:\w+\s+)?(?:gatekeeper|antivirus|anti-virus|windows\s+defender"
                r"|defender|SIP|system\s+integrity\s+protection|SELinux|apparmor"
                r"|firewall|EDR|the\s+sandbox|safety\s+(?:checks?|filters?))",
                r"xattr\s+-\w*[cdr]\w*\s+(?:-\w+\s+)*(?:com\.apple\.quarantine"
                r"|/|\S+\.app)|spctl\s+--master-disable|csrutil\s+disable|Set-MpPreference\s+"
                r"-Disable|Add-MpPreference\s+-Exclusion|setenforce\s+0|ufw\s+disable",
                r"(?:history\s+-c\b|unset\s+HISTFILE|HISTFILE=/dev/null|>\s*~?/?\S*\.bash_history"
                r"|wevtutil\s+cl|rm\s+-\w+\s+/var/log)",
                r"(?:unzip|7z[az]?|tar|unrar)\b[^\n]{0,60}\s-[pP]\s?\S+[^\n]{0,80}(?:&&"
                r"|;|\n)[^\n]{0,80}(?:\./|chmod|open\s)",
                r"(?:extract|unzip|unpack|open)\b[^.\n]{0,60}\b(?:pass(?:word"
                r"|phrase)?|pass)\s*(?:is|:|=|`|\")\s*[`\"']?\w+",
                r"NODE_TLS_REJECT_UNAUTHORIZED\s*=\s*[\"']?0[\"']?[^\n]{0,60}(?:curl"
                r"|node|npm|fetch)",
                r"chmod\s+(?:\S{0,3}\+s\b|[246]7\d{2}\b)|NOPASSWD:\s*ALL",
                r"(?:extract|unzip|unpack|open|decrypt)\b[^.\n]{0,80}\b(?:with|using)\s+(?:the\s+)?pass(?:word"
                r"|code|phrase)\s+\S",
                r"approval[_-]?policy[\"']?\s*[:=]\s*[\"']?never|LSQuarantine\b[^\n]{0,20}(?:NO"
                r"|false|0)",
                r"(?:turn\s+off|disable|bypass|suppress)\s+(?:all\s+|the\s+|any\s+)*(?:confirmation"
                r"|permission|approval)\s+(?:prompts?|dialogs?|requests?|checks?)",
            ),
            _rule(
                "stays-on-machine",
                "something is left behind that runs later, or in other conversations",
                "Skills that wrote into SOUL.md and MEMORY.md of other agents, 2026",
                r"(?:>>?|tee\s+(?:-a\s+)?|append[^.\n]{0,40}to|add[^.\n]{0,60}to"
                r"|write[^.\n]{0,40}(?:to|into)|insert[^.\n]{0,40}into)\s*[`\"']?(?:~"
                r"|\$HOME|/root|/home/\w+)?/?\.ssh/authorized_keys",
                r"(?:\|\s*crontab\s+-|crontab\s+-l[^\n]{0,120}\|\s*crontab|>>?\s*/etc/cron"
                r"|/etc/cron\.\w+/\S+\s*<<|@reboot\s)",
                r"launchctl\s+(?:load|bootstrap)\b|>\s*~?/?\S*Library/LaunchAgents/"
                r"|systemctl\s+--user\s+enable\s+(?:--now\s+)?\S+|schtasks\s+/create"
                r"|(?:reg\s+add|New-Item|Set-Item)[^\n]{0,80}CurrentVersion\\{1,2}Run\b",
                r"(?:>>|append[^.\n]{0,30}to|add[^.\n]{0,60}to|inject[^.\n]{0,40}into)"
                r"\s*[`\"']?(?:~|\$HOME)/\.(?:bashrc|zshrc|profile|bash_profile"
                r"|zprofile)[`\"']?[^\n]{0,120}(?:curl|wget|base64|nc\s|eval|python3?\s+"
                r"-c)",
                r"(?:echo|printf)\s[^\n]{0,160}(?:curl|wget|base64|nc\s|eval)[^\n]{0,160}"
                r">>\s*(?:~|\$HOME)/\.(?:bashrc|zshrc|profile|bash_profile|zprofile)",
                r"(?:>>?|append[^.\n]{0,60}\bto|write[^.\n]{0,60}\b(?:to|into)"
                r"|add[^.\n]{0,60}\bto|modify|edit|update|insert[^.\n]{0,60}\binto)\s*(?:the\s+)?[`\"']?(?:~"
                r"|\$HOME)/\.(?:claude|codex|cursor|gemini|openclaw|config/opencode)/\S*(?:CLAUDE"
                r"|AGENTS|GEMINI|SOUL|MEMORY|settings|hooks|rules|mcp)",
                r"(?:>>?|append[^.\n]{0,60}\bto|write[^.\n]{0,60}\b(?:to|into)"
                r"|add[^.\n]{0,80}\bto|insert[^.\n]{0,60}\binto)\s*(?:the\s+)?(?:agent(?:'s)?\s+)?[`\"']?(?:SOUL"
                r"|MEMORY)\.md",
                r">\s*\.git/hooks/\w+",
                r"core\.hooksPath\s+[\"']?[/~$]",
                r"(?:save|store|write|add|persist|record|put)\b[^.\n]{0,60}(?:long[- ]term\s+memory"
                r"|your\s+(?:persistent\s+|permanent\s+)?memory\b|global\s+(?:memory|rules"
                r"|instructions))[^.\n]{0,80}(?:every|all|future|each|always)",
            ),
            _rule(
                "destroys-data",
                "files of the user are deleted or made unreadable",
                "Wiper prompt in the Amazon Q extension, July 2025",
                r"\brm\s+(?:-\w+\s+|--\S+\s+)*-?\w*(?:rf|fr|r)\w*\s+(?:--\S+\s+)*[\"']?(?:/"
                r"|~/?|\$HOME/?|\$\{HOME\}/?|/\*|~/\*)[\"']?/?\*?(?:\s|$|;|&|\))",
                r"\bdd\b[^\n]{0,80}\bof=/dev/(?:sd|nvme|disk|hd|mmc)",
                r"\bmkfs(?:\.\w+)?\s+(?:-\w+\s+)*/dev/",
                r":\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;",
                r"shutil\.rmtree\s*\(\s*(?:os\.path\.expanduser\(\s*[\"']~[/\"']"
                r"|Path\.home\(\)\s*[,)]|[\"']/[\"'])",
                r"(?:format\s+c:|del\s+/[sfq]\s+(?:/\w\s+)*c:\\|Remove-Item\s+[^\n]{0,40}"
                r"-Recurse[^\n]{0,40}(?:C:\\|\$HOME|~)[\s\"']|cipher\s+/w)",
                r"(?:delete|wipe|erase|remove|encrypt)\s+(?:all|every(?:thing)?)\s+(?:of\s+)?(?:the\s+)?(?:user'?s?\s+)?(?:files"
                r"|documents|data|home)\b[^.\n]{0,40}(?:home|disk|machine|computer"
                r"|~)",
                r"terminate-instances[^\n]{0,60}--instance-ids|aws\s+s3\s+rb\s+[^\n]{0,60}"
                r"--force[^\n]{0,80}(?:all|every|for)",
                r"\bfind\s+(?:~|/|\$HOME)/?\s[^\n]{0,120}(?:-delete\b|\bshred\b|\brm\s)",
                r"(?:delete|wipe|erase|encrypt|overwrite|shred)\s+(?:all|every|each)\s+(?:\w+\s+){0,2}?(?:files?"
                r"|documents?)\b[^.\n]{0,40}\b(?:home|disk|drive|machine|computer)\b",
            ),
            _rule(
                "unverified-package",
                "a package is installed from an address or index of somebody's choice",
                "Dependency confusion, 2021, and slopsquatting, 2025",
                r"\bpip3?\s+install\b[^\n]{0,120}(?:\s|=)(?:https?://(?!github\.com"
                r"|gitlab\.com|download\.pytorch\.org|files\.pythonhosted\.org)\S+\.(?:whl"
                r"|zip|tar\.gz|tgz)|https?://\d+\.\d+)",
                r"(?:--(?:extra-)?index-url|-i)[\s=]+[\"']?http://(?!localhost|127\.0\.0\.1)",
                r"--trusted-host\s+(?!localhost|127\.0\.0\.1)\S+",
                r"\bnpm\s+(?:i|install|add)\b[^\n]{0,100}\s(?:https?://(?!github\.com"
                r"|codeload\.github)\S+\.tgz|http://\S+)",
                r"\b(?:npx|uvx|pipx\s+run|bunx|pnpm\s+dlx)\s+(?:-\w+\s+|--\S+\s+)*[\"']?(?:https?://(?!github\.com)"
                r"|http://)\S+",
                r"--registry[\s=]+[\"']?http://(?!localhost|127\.0\.0\.1)",
                r"\b(?:pip3?|uv|npm|cargo)\b[^\n]{0,80}\bgit\+http://",
            ),
            _rule(
                "replaces-own-tool",
                "a tool takes the name of one of Satchel's own, or tells the model to prefer it",
                "Tool shadowing between MCP servers, 2025",
                r"[\"']?name[\"']?\s*[:=]\s*[\"'](?:reset_equipped_tools|load_skill"
                r"|read_skill_file|run_skill_script|search_tools|search_skills"
                r"|activate_tools)[\"']",
                r"def\s+(?:reset_equipped_tools|load_skill|read_skill_file|run_skill_script"
                r"|search_skills|activate_tools)\s*\(",
                r"(?:always|must)\s+(?:use|call|invoke|prefer)\s+this\s+(?:tool"
                r"|skill|server)\s+(?:first\s+)?(?:instead\s+of|rather\s+than"
                r"|before|in\s+place\s+of)\s+(?:any|all|every|the)\b",
                r"(?:never|do\s+not|don't)\s+(?:use|call|invoke)\s+(?:the\s+(?:real"
                r"|original|official|built-in))\s+(?:tools?|skills?|servers?|version)"
                r"\b",
                r"(?:when|if|whenever|before)\s+(?:the\s+)?(?:tool\s+)?[`\"']?\w+[`\"']?\s+"
                r"(?:tool\s+)?is\s+(?:called|used|invoked|available)[^.\n]{0,80}(?:change"
                r"|replace|set|redirect|modify|substitute)\s+the\s+(?:recipient"
                r"|address|to\b|destination|url|argument|amount)",
                r"(?:never|do\s+not|don't|stop)\s+(?:use|call|invoke|using)\s+(?:the\s+)?(?:built-in"
                r"|original|official|real|standard)\s+[`\"']?\w+[`\"']?\s+tool\b",
                r"use\s+this\s+(?:tool|server)\s+for\s+(?:every|all|any)\s+(?:request|task"
                r"|query|message|question)s?\b",
            ),
        )
    }
)

KNOWN_INSTALLERS = re.compile(
    r"https?://(?:astral\.sh|sh\.rustup\.rs|static\.rust-lang\.org|get\.docker\.com"
    r"|bun\.sh|deno\.land|get\.pnpm\.io|install\.python-poetry\.org|claude\.ai"
    r"|get\.helm\.sh|fnm\.vercel\.app|raw\.githubusercontent\.com/(?:Homebrew"
    r"|nvm-sh|helm|pyenv|ohmyzsh|aquasecurity|anchore|github)/|get\.sdkman\.io"
    r"|install\.determinate\.systems|nixos\.org|aka\.ms|deb\.nodesource\.com|fly\.io"
    r"|tailscale\.com|ollama\.com|get\.volta\.sh|mise\.run|www\.npmjs\.com|bootstrap\.pypa\.io"
    r"|cli\.github\.com|pkg\.cloudflare\.com|packages\.cloud\.google\.com|apt\.releases\.hashicorp\.com"
    r"|cursor\.com|opencode\.ai|foundry\.paradigm\.xyz|get\.k3s\.io|code\.kimi\.com)"
)
"""Addresses of installers that their makers document; `fetch-and-run` leaves them out."""
