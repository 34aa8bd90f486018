"""Closed lists of words: function words of some languages, words of mood. Data only."""

from __future__ import annotations

LANGUAGE_NAMES: dict[str, str] = {
    name: row.split()[0]
    for row in (
        "ar ara arabic", "bg bul bulgarian", "bn ben bengali", "ca cat catalan", "cs ces cze czech", "da dan danish",
        "de deu ger german deutsch", "el ell gre greek", "en eng english", "es spa spanish castilian español", "et est estonian",
        "fa fas per persian farsi", "fi fin finnish", "fr fra fre french français", "he heb iw hebrew", "hi hin hindi", "hr hrv croatian",
        "hu hun hungarian", "id ind in indonesian", "it ita italian italiano", "ja jpn jp japanese", "ko kor korean", "lt lit lithuanian",
        "lv lav latvian", "ms msa may malay", "nl nld dut dutch flemish", "no nor nob nb norwegian", "nn nno nynorsk", "pl pol polish",
        "pt por portuguese português", "ro ron rum romanian", "ru rus russian", "sk slk slo slovak", "sl slv slovenian", "sr srp serbian",
        "sv swe swedish", "sw swa swahili", "ta tam tamil", "te tel telugu", "th tha thai", "tl tgl fil tagalog filipino",
        "tr tur turkish", "uk ukr ukrainian", "ur urd urdu", "vi vie vietnamese", "yue cantonese 粤语",
        "zh zho chi cmn cn mandarin chinese 中文 普通话 汉语", "af afr afrikaans", "am amh amharic", "as asm assamese",
        "az aze azerbaijani",
        "ba bak bashkir", "be bel belarusian", "bo bod tib tibetan", "br bre breton", "bs bos bosnian", "cy cym wel welsh",
        "eu eus baq basque", "fo fao faroese", "gl glg galician", "gu guj gujarati", "ha hau hausa", "haw hawaiian", "ht hat haitian",
        "hy hye arm armenian", "is isl ice icelandic", "jw jv jav javanese", "ka kat geo georgian", "kk kaz kazakh", "km khm khmer",
        "kn kan kannada", "la lat latin", "lb ltz luxembourgish", "ln lin lingala", "lo lao", "mg mlg malagasy", "mi mri mao maori",
        "mk mkd mac macedonian", "ml mal malayalam", "mn mon mongolian", "mr mar marathi", "mt mlt maltese", "my mya bur burmese myanmar",
        "ne nep nepali", "oc oci occitan", "pa pan punjabi", "ps pus pashto", "sa san sanskrit", "sd snd sindhi", "si sin sinhala",
        "sn sna shona", "so som somali", "sq sqi alb albanian", "su sun sundanese", "tg tgk tajik", "tk tuk turkmen", "tt tat tatar",
        "uz uzb uzbek", "yi yid yiddish", "yo yor yoruba",
    )
    for name in row.split()
}  # fmt: skip
"""Other names of languages: ISO 639-2 and 639-3 codes, old and wrong but common ones, and what people write; to ISO 639-1."""

LANGUAGES: frozenset[str] = frozenset(
    (
        "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id is "
        "it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt ro ru sa sd si sk "
        "sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo zh yue"
    ).split()
)
"""Codes that Whisper knows."""

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(text.split())
    for code, text in {
        "en": (
            "the a an and or but of to in on at for with by from as is are was were be been it its this that these those i you "
            "he she we they my your his her our their what which who how when where why not no do does did have has had will "
            "would can could should there here then than so if into about up out just now one let's we're it's that's don't i'm "
            "you're "
        ),
        "de": (
            "der die das und oder aber ein eine einen einem einer ist sind war waren nicht mit von zu im in auf für als auch es "
            "sie wir ihr ich du er den dem des dass wie was wer wo wenn dann noch nur nach bei aus um über werden wird hat haben "
            "kann "
        ),
        "fr": (
            "le la les un une des et ou mais de du à au aux en dans sur pour avec par est sont était ne pas que qui ce cette ces "
            "il elle nous vous ils je tu on se sa son ses leur plus comme tout fait être avoir "
        ),
        "es": (
            "el la los las un una unos y o pero de del a al en con por para es son era no que quien este esta estos se su sus lo "
            "le me te nos más como muy ya hay ser estar fue "
        ),
        "it": (
            "il lo la i gli le un una e o ma di del della a al alla in con per da è sono era non che chi questo questa si su suo "
            "sua come più anche essere stato "
        ),
        "pt": (
            "o a os as um uma e ou mas de do da dos em no na com por para é são era não que quem este esta se seu sua como mais "
            "muito já há ser foi "
        ),
        "nl": (
            "de het een en of maar van te in op aan voor met door uit is zijn was waren niet dat die dit deze ik je hij zij we "
            "wij jullie wat wie hoe als dan nog ook er naar bij om "
        ),
    }.items()
}
"""The commonest words of a language: enough to tell it from another."""

FILLERS = frozenset(
    (
        "am im ive id ill youre youve hes shes weve were theyre its thats theres heres lets cant wont dont doesnt didnt isnt "
        "arent wasnt me him them us mine yours any some all each every both few more most other such only own same too very "
        "s t now really actually just also because while during before after above below between again further once over "
        "under until against being having doing shall may might must well going go get got make makes made like thing things "
        "way want know see look say says said think okay ok right yes yeah oh um uh much many lot kind sort even still back "
        "down off through around let although though however therefore thus hence yet never ever always often perhaps maybe "
        "rather quite nearly almost about anyone everyone someone nobody anything everything something nothing another "
        "either neither whether within without upon among toward towards across along behind beside besides except since "
        "unless whose whom which whatever whenever wherever come comes came goes gone went taken takes took put puts set "
        "sets called call calls become becomes became seem seems seemed appear appears use uses used using try tries tried "
        "give gives given gave keep keeps kept wants wanted need needs needed tell tells told talk talks ask asks asked "
        "happen happens happened start starts started begin begins began end ends ended able enough less least best better "
        "good little first second last next several various certain different possible important main part parts sorts "
        "example examples instance case cases time times day days year years today tomorrow yesterday later soon ago already "
        "one two three four five six seven eight nine ten "
    ).split()
)
"""English words beyond the function words that say nothing of the subject."""

PARTICLES = frozenset(
    (
        "的 了 着 过 吗 呢 吧 啊 呀 嘛 哦 在 是 有 和 与 及 或 而 但 也 都 就 还 又 再 很 更 最 太 非常 不 没 没有 被 把 将 让 使 给 对 从 "
        "向 往 到 于 以 为 因 所以 因为 如果 那么 但是 可是 然后 以及 而且 并且 或者 这 那 这个 那个 这些 那些 这样 那样 这里 那里 什么 "
        "怎么 为什么 哪 谁 我 你 您 他 她 它 我们 你们 他们 她们 它们 咱们 自己 大家 一个 一些 一种 个 们 之 其 此 该 要 会 能 可以 可能 "
        "应该 必须 想 说 看 用 做 去 来 上 下 里 中 后 前 时候 时 当 每 各 等 比 像 如 "
        "は が を に へ と で も の か ね よ から まで より だ です ます した して する いる ある これ それ あれ この その あの そして "
        "しかし また ません でした ました"
    ).split()
)
"""Particles and pronouns of Chinese and Japanese that stand between the words that carry the subject."""

MOODS: dict[str, frozenset[str]] = {
    mood: frozenset(text.split())
    for mood, text in {
        "energetic": (
            "fast speed powerful explosion race run win strong launch rocket fight sport action quick danger dangerous "
            "crush attack storm 快 速 赛 爆 冲 战 强 竞"
        ),
        "happy": (
            "happy fun joy love great smile laugh win celebrate enjoy wonderful amazing friend party bright sunny welcome play game "
            "delicious 乐 笑 爱 喜 棒 欢 趣 美味 朋友"
        ),
        "nostalgic": (
            "history old ancient century past remember memory war king empire founded origin tradition heritage once ago museum century "
            "历史 古 世纪 过去 记忆 战争 王 传统 回忆 年代"
        ),
        "tender": (
            "mother father child children baby family heart gentle soft care hope dream home life death lost tears alone together "
            "beautiful 母 父 孩 家 心 温 爱 梦 生命 美丽 希望"
        ),
        "calm": (
            "learn explain know understand science nature water sea forest quiet slow simple method example question study think observe "
            "conservation theory research 学 科 自然 水 海 森林 静 方法 研究 理论 知识"
        ),
    }.items()
}
"""Words that speak for a mood of music (moods as in tagged music libraries)."""
