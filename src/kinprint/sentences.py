"""What went wrong, in words: one table for all errors, in English and Korean.

Each sentence says what happened, what it means where that is not plain, and what to do.
Fields in braces are those the error carries; both languages use the same ones.
"""

from __future__ import annotations

SENTENCES: dict[str, dict[str, str]] = {
    "KinprintError": {"en": "{cause}", "ko": "{cause}"},
    "UsageError": {"en": "{cause}", "ko": "{cause}"},
    "BadReference": {
        "en": "'{given}' does not name a model: {cause}. Give org/name, org/name@revision, hf://…, "
        "the web address of a model page, a folder or file, or an https:// address of a weight file.",
        "ko": "'{given}'은(는) 모델 이름이 아닙니다: {cause}. org/name, org/name@revision, hf://…, "
        "모델 페이지 주소, 폴더나 파일, 또는 가중치 파일의 https:// 주소를 쓰십시오.",
    },
    "BadOption": {
        "en": "{option} cannot be '{value}': {cause}.",
        "ko": "{option} 값으로 '{value}'을(를) 쓸 수 없습니다: {cause}.",
    },
    "MissingExtra": {
        "en": "{feature} needs a part that is not installed. "
        "Install it from the repository: pip install '.[{extra}]'.",
        "ko": "{feature}에 필요한 구성 요소가 설치되어 있지 않습니다. "
        "저장소에서 설치하십시오: pip install '.[{extra}]'.",
    },
    "SourceError": {"en": "{cause}", "ko": "{cause}"},
    "RepositoryMissing": {
        "en": "There is no model '{name}' on {host}, or it is private and your token does not open it. "
        "Check the spelling; for a private model log in with `hf auth login` or set HF_TOKEN.",
        "ko": "{host}에 '{name}' 모델이 없거나, 비공개라서 현재 토큰으로 열 수 없습니다. "
        "철자를 확인하고, 비공개 모델이면 `hf auth login`으로 로그인하거나 HF_TOKEN을 설정하십시오.",
    },
    "RevisionMissing": {
        "en": "'{name}' exists, but it has no branch, tag or commit '{revision}'. "
        "Leave out @{revision} to read its main branch.",
        "ko": "'{name}'은(는) 있지만 '{revision}'이라는 브랜치, 태그, 커밋이 없습니다. "
        "@{revision}을(를) 빼면 main 브랜치를 읽습니다.",
    },
    "FileMissing": {
        "en": "'{name}' has no file '{path}'. Check the spelling, the revision and the address.",
        "ko": "'{name}'에 '{path}' 파일이 없습니다. 철자와 리비전, 주소를 확인하십시오.",
    },
    "NoWeights": {
        "en": "'{name}' holds no weights that kinprint can read: {cause}. kinprint reads "
        ".safetensors, .gguf and PyTorch archives (.bin, .pt, .pth, .ckpt).",
        "ko": "'{name}'에 kinprint가 읽을 수 있는 가중치가 없습니다: {cause}. "
        ".safetensors, .gguf, PyTorch 파일(.bin, .pt, .pth, .ckpt)을 읽습니다.",
    },
    "RepositoryGated": {
        "en": "'{name}' is gated: its owner asks you to accept conditions first. "
        "Open {url} in a browser, accept them, then log in with `hf auth login` or set HF_TOKEN.",
        "ko": "'{name}'은(는) 접근 승인이 필요한 모델입니다. 브라우저에서 {url}을(를) 열어 조건에 동의한 뒤 "
        "`hf auth login`으로 로그인하거나 HF_TOKEN을 설정하십시오.",
    },
    "RepositoryPrivate": {
        "en": "{host} refused '{name}' (status {status}): there is no token, or it is wrong or expired, or it may not read this model. Log in with `hf auth login`, or set HF_TOKEN to a token with read access.",
        "ko": "{host}이(가) '{name}' 읽기를 거부했습니다(상태 {status}). 토큰이 없거나 잘못되었거나 만료되었거나 이 모델을 읽을 권한이 없습니다. `hf auth login`으로 로그인하거나 읽기 권한이 있는 토큰을 HF_TOKEN에 설정하십시오.",
    },
    "AccessRefused": {
        "en": "'{path}' may not be read here ({cause}). "
        "Check the permissions of the file or the address, and try again.",
        "ko": "'{path}'을(를) 읽을 권한이 없습니다({cause}). 파일 권한이나 주소를 확인한 뒤 다시 시도하십시오.",
    },
    "OfflineMiss": {
        "en": "Offline mode is on (HF_HUB_OFFLINE) and the cache does not hold {what}. "
        "Run the same command once with the network on; after that it works offline.",
        "ko": "오프라인 모드(HF_HUB_OFFLINE)인데 캐시에 {what}이(가) 없습니다. "
        "네트워크가 되는 상태에서 같은 명령을 한 번 실행하면 그 뒤로는 오프라인에서도 됩니다.",
    },
    "NetworkError": {"en": "{cause}", "ko": "{cause}"},
    "NotAHub": {
        "en": "{host} answers, but not as a Hugging Face Hub does. Check HF_ENDPOINT, and whether a login page or a proxy stands in between.",
        "ko": "{host}이(가) 답하기는 하지만 Hugging Face Hub의 답이 아닙니다. HF_ENDPOINT를 확인하고, 중간에 로그인 페이지나 프록시가 있는지 보십시오.",
    },
    "Unreachable": {
        "en": "No connection to {host} ({cause}), after several tries. Check the network, the proxy "
        "and HF_ENDPOINT; what was read so far is kept, so a new run goes on from here.",
        "ko": "여러 번 시도했지만 {host}에 연결하지 못했습니다({cause}). 네트워크, 프록시, HF_ENDPOINT를 확인하십시오. "
        "지금까지 읽은 것은 보관되므로 다시 실행하면 이어서 읽습니다.",
    },
    "RateLimited": {
        "en": "{host} allows no more requests for now (status 429, {wait}). Log in for a higher limit "
        "(`hf auth login`) or wait; what was read so far is kept.",
        "ko": "{host}이(가) 지금은 요청을 더 받지 않습니다(상태 429, {wait}). 로그인(`hf auth login`)하면 한도가 늘어납니다. "
        "아니면 기다리십시오. 지금까지 읽은 것은 보관됩니다.",
    },
    "ServerFailed": {
        "en": "{host} answered '{path}' with status {status}, after several tries. The fault is on that "
        "side: try again later; what was read so far is kept.",
        "ko": "여러 번 시도했지만 {host}이(가) '{path}'에 상태 {status}로 답했습니다. 서버 쪽 문제이므로 나중에 다시 "
        "시도하십시오. 지금까지 읽은 것은 보관됩니다.",
    },
    "BodyBroken": {
        "en": "{host} broke off '{path}' after {got} of {wanted} bytes, again and again. "
        "Try again later or over another network; what was read so far is kept.",
        "ko": "{host}이(가) '{path}'을(를) {wanted}바이트 중 {got}바이트에서 거듭 끊었습니다. "
        "나중에 또는 다른 네트워크에서 다시 시도하십시오. 지금까지 읽은 것은 보관됩니다.",
    },
    "TooSlow": {
        "en": "{host} sent only {got} of {wanted} bytes of '{path}' in {seconds} seconds, and it was given up. "
        "Try again later; what was read so far is kept.",
        "ko": "{host}이(가) '{path}'의 {wanted}바이트 중 {got}바이트만 {seconds}초 동안 보내서 중단했습니다. "
        "나중에 다시 시도하십시오. 지금까지 읽은 것은 보관됩니다.",
    },
    "RangeIgnored": {
        "en": "{host} ignores Range requests and would send all {size} bytes of '{path}'. Nothing was "
        "downloaded. Use a server that supports Range (the Hub does), or a local copy.",
        "ko": "{host}이(가) Range 요청을 무시하고 '{path}' 전체({size}바이트)를 보내려 합니다. 내려받지 않았습니다. "
        "Range를 지원하는 서버(Hub 등)나 로컬 복사본을 쓰십시오.",
    },
    "RangeRefused": {
        "en": "{host} says bytes {start} to {stop} lie outside '{path}' (status 416). The file is shorter than its listing says: it is damaged or was replaced. Run the command again, or get a fresh copy.",
        "ko": "{host}이(가) '{path}'에 {start}~{stop} 바이트가 없다고 답했습니다(상태 416). 파일이 목록보다 짧습니다. 손상되었거나 바뀌었습니다. 다시 실행하거나 새로 받으십시오.",
    },
    "LengthWrong": {
        "en": "{host} answered '{path}' with other bytes than asked for ({cause}), twice. They were thrown away. A proxy in between may be at fault: try again over another network.",
        "ko": "{host}이(가) '{path}'에 요청과 다른 바이트를 두 번 보냈습니다({cause}). 받은 것은 버렸습니다. 중간 프록시가 원인일 수 있으니 다른 네트워크에서 다시 시도하십시오.",
    },
    "FileChanged": {
        "en": "'{path}' changed while it was being read ({cause}). Run the command again to read the new state.",
        "ko": "읽는 동안 '{path}'이(가) 바뀌었습니다({cause}). 명령을 다시 실행하면 새 상태를 읽습니다.",
    },
    "FormatError": {"en": "{cause}", "ko": "{cause}"},
    "BadHeader": {
        "en": "'{file}' is not a valid safetensors file: {cause}. Nothing was taken from it; get a fresh copy.",
        "ko": "'{file}'은(는) 올바른 safetensors 파일이 아닙니다: {cause}. 아무것도 읽지 않았습니다. 새로 받으십시오.",
    },
    "BadIndex": {
        "en": "The index '{file}' cannot be used: {cause}. The repository is damaged or hostile; "
        "name one of its weight files directly to read it alone.",
        "ko": "인덱스 '{file}'을(를) 쓸 수 없습니다: {cause}. 저장소가 손상되었거나 악의적입니다. "
        "가중치 파일 하나를 직접 지정하면 그것만 읽을 수 있습니다.",
    },
    "BadPickle": {
        "en": "'{file}' was refused: {cause}. Its pickle was only looked at, nothing in it was run. "
        "Ask for a safetensors version of this model.",
        "ko": "'{file}'을(를) 거부했습니다: {cause}. 피클은 살펴보기만 했고 아무것도 실행하지 않았습니다. "
        "이 모델의 safetensors 버전을 구하십시오.",
    },
    "BadGguf": {
        "en": "'{file}' is not a valid GGUF file: {cause}. Nothing was taken from it; get a fresh copy.",
        "ko": "'{file}'은(는) 올바른 GGUF 파일이 아닙니다: {cause}. 아무것도 읽지 않았습니다. 새로 받으십시오.",
    },
    "BadArchive": {
        "en": "'{file}' is not a PyTorch archive that kinprint can read: {cause}. Get a fresh copy, or one in safetensors form.",
        "ko": "'{file}'은(는) kinprint가 읽을 수 있는 PyTorch 파일이 아닙니다: {cause}. 새로 받거나 safetensors 버전을 구하십시오.",
    },
    "BadConfig": {
        "en": "'{file}' cannot be read as a configuration: {cause}.",
        "ko": "'{file}'을(를) 설정 파일로 읽을 수 없습니다: {cause}.",
    },
    "BadQuantisation": {
        "en": "The quantised weights in '{file}' cannot be turned into numbers: {cause}. Look for the model in another format, best the one it was made from.",
        "ko": "'{file}'의 양자화된 가중치를 숫자로 풀 수 없습니다: {cause}. 다른 형식의 모델을, 되도록 양자화하기 전의 모델을 찾아보십시오.",
    },
    "BadAdapter": {
        "en": "The adapter in '{file}' cannot be merged into its base: {cause}. Look for a merged copy of the model, or compare the base itself.",
        "ko": "'{file}'의 어댑터를 기반 모델에 합칠 수 없습니다: {cause}. 합쳐진 모델을 찾거나 기반 모델 자체를 비교하십시오.",
    },
    "BadTokenizer": {
        "en": "'{file}' cannot be read as a tokenizer: {cause}. Get a fresh copy; weights can be compared without it.",
        "ko": "'{file}'을(를) 토크나이저로 읽을 수 없습니다: {cause}. 새로 받으십시오. 가중치는 토크나이저 없이도 비교할 수 있습니다.",
    },
    "PartsMissing": {
        "en": "'{name}' is incomplete: {missing} of its weight files is not there. Often a download was interrupted: get the missing files, or point at one file to read it alone.",
        "ko": "'{name}'이(가) 불완전합니다. 가중치 파일 가운데 {missing}이(가) 없습니다. 다운로드가 중단된 경우가 많습니다. 빠진 파일을 받거나, 파일 하나를 지정해 그것만 읽으십시오.",
    },
    "TensorMissing": {
        "en": "Tensor '{tensor}' is not in '{file}', though {promised} says so. "
        "The repository is incomplete or damaged; get a fresh copy.",
        "ko": "{promised}에 따르면 있어야 할 텐서 '{tensor}'이(가) '{file}'에 없습니다. "
        "저장소가 불완전하거나 손상되었습니다. 새로 받으십시오.",
    },
    "TensorUnknown": {
        "en": "'{name}' has no tensor '{tensor}'; the nearest name is {near}. `kinprint inspect` lists all.",
        "ko": "'{name}'에 '{tensor}' 텐서가 없습니다. 가장 가까운 이름: {near}. `kinprint inspect`가 모두 보여 줍니다.",
    },
    "DtypeUnknown": {
        "en": "'{file}' uses the number format '{dtype}', which this version of kinprint does not know. Look for a newer version, or for the model in another format.",
        "ko": "'{file}'이(가) 쓰는 수 형식 '{dtype}'을(를) 이 버전의 kinprint는 모릅니다. 새 버전이나 다른 형식의 모델을 찾아보십시오.",
    },
    "SliceOutside": {
        "en": "Tensor '{tensor}' of shape {shape} has no {what}.",
        "ko": "모양이 {shape}인 텐서 '{tensor}'에 {what}이(가) 없습니다.",
    },
    "BudgetExceeded": {
        "en": "This needs at least {needed} in {requests} requests, and the budget is {budget}. Nothing more was read. Give --budget {suggested} or more.",
        "ko": "{requests}번의 요청으로 적어도 {needed}이(가) 필요한데 한도는 {budget}입니다. 더 읽지 않았습니다. --budget {suggested} 이상을 주십시오.",
    },
    "CacheError": {"en": "{cause}", "ko": "{cause}"},
    "DiskFull": {
        "en": "The disk with the cache is full: {folder} has no room for {bytes} more bytes. What is stored there "
        "stays valid. Free some space, run `kinprint cache clear`, set HF_ASSETS_CACHE to another disk, or give --no-cache.",
        "ko": "캐시 디스크가 가득 찼습니다: {folder}에 {bytes}바이트를 더 쓸 수 없습니다. 이미 저장된 것은 유효합니다. "
        "공간을 비우거나 `kinprint cache clear`를 실행하거나 HF_ASSETS_CACHE를 다른 디스크로 정하거나 --no-cache를 주십시오.",
    },
    "CacheBroken": {
        "en": "The cache in {folder} cannot be used ({cause}). "
        "Check its permissions, set HF_ASSETS_CACHE to another folder, or give --no-cache.",
        "ko": "{folder}의 캐시를 쓸 수 없습니다({cause}). 권한을 확인하거나 HF_ASSETS_CACHE를 다른 폴더로 정하거나 --no-cache를 주십시오.",
    },
    "SystemFailed": {
        "en": "The system refused something: {cause}. Check the path, its permissions and the free space, and run the command again.",
        "ko": "시스템이 작업을 거부했습니다: {cause}. 경로와 권한, 남은 공간을 확인한 뒤 다시 실행하십시오.",
    },
}
