//! Little words found in every text, such as articles. Memories are not found by little words.
//! Pure.
//!
//! A little word of a language may be a noun in another: `car`, `door`, `hat`, `war`. Such a word
//! counts as little only in a question of its language, judged by the other little words.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::tokenizer;

/// The searchable words of a text, without repetitions, in their order.
pub(super) fn telling(text: &str) -> Vec<String> {
    let all = tokenizer::distinct(text);
    let (language, names) = (language(&all), names(text));
    all.into_iter()
        .filter(|word| !is_little(word, language, &names))
        .collect()
}

fn is_little(word: &str, language: Option<usize>, names: &HashSet<String>) -> bool {
    let known = LITTLE.get(word).copied().unwrap_or_default();
    let is_here = language.is_some_and(|language| known.in_some & (1 << language) != 0);
    known.everywhere != 0 || (is_here && !names.contains(word)) || is_unspaced_little(word)
}

/// The language with the most little words; none when two languages have as many.
fn language(words: &[String]) -> Option<usize> {
    let mut hits = [0_usize; LANGUAGES.len()];
    for known in words.iter().filter_map(|word| LITTLE.get(word.as_str())) {
        let has = |language: &usize| known.everywhere & (1 << language) != 0;
        (0..LANGUAGES.len())
            .filter(has)
            .for_each(|language| hits[language] += 1);
    }
    let most = hits.iter().copied().max().filter(|most| *most > 0)?;
    let mut best = (0..LANGUAGES.len()).filter(|language| hits[*language] == most);
    best.next().filter(|_| best.next().is_none())
}

/// Words with a capital inside a sentence: `Will`, `May`, `Mia`.
fn names(text: &str) -> HashSet<String> {
    let runs = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|run| !run.is_empty());
    let is_name = |run: &&str| {
        run.starts_with(char::is_uppercase) && run.chars().nth(1).is_some_and(char::is_lowercase)
    };
    runs.skip(1)
        .filter(is_name)
        .map(str::to_lowercase)
        .collect()
}

/// Writing without spaces is looked at two characters at a time.
fn is_unspaced_little(word: &str) -> bool {
    let is_little = || {
        UNSPACED_PAIRS.split_whitespace().any(|pair| pair == word)
            || word.chars().all(|c| CHINESE.contains(c))
    };
    word.starts_with(tokenizer::is_unspaced) && is_little()
}

/// The languages of a little word, a bit for each.
#[derive(Debug, Clone, Copy, Default)]
struct Little {
    /// Languages in which the word is little, and a noun or name in no other language.
    everywhere: u16,
    /// Languages in which the word is little, but a noun or name in another language.
    in_some: u16,
}

static LITTLE: LazyLock<HashMap<&'static str, Little>> = LazyLock::new(|| {
    let mut little: HashMap<&str, Little> = HashMap::new();
    for (number, language) in LANGUAGES.iter().enumerate() {
        for word in language.everywhere.split_whitespace() {
            little.entry(word).or_default().everywhere |= 1 << number;
        }
        for word in language.in_some.split_whitespace() {
            little.entry(word).or_default().in_some |= 1 << number;
        }
    }
    little
});

/// A language's little words. Apostrophes separate words, so `don't` and `l'ami` leave single
/// letters behind.
struct Language {
    everywhere: &'static str,
    /// Little words with another meaning as a noun, name or sign in another language.
    in_some: &'static str,
}

const LANGUAGES: [Language; 9] = [
    ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH, RUSSIAN, KOREAN,
];

const ENGLISH: Language = Language {
    everywhere: "
        a about above after again against ain all also am an and any anybody anyone anything are aren as at be because
        been before being below between both but by can cannot could couldn d did didn do does doesn doing done during
        each either else even ever every everybody everyone everything few for from further get gets got had hadn has
        hasn have haven having he hello her here hers herself hey hi him himself his how however i if in into is isn
        it its itself just know knows let lets ll m me might more most must mustn my myself neither no nobody none nor
        not nothing now of off ok okay on once one ones only onto or other others ought our ours ourselves out over
        own please re remember s said same say says shall shan she should shouldn so some somebody someone something
        still such t tell tells than thank thanks that the their theirs them themselves then there these they thing
        things this those through to too under until up upon us ve very was wasn we were weren what whatever when
        where whether which while who whoever whom whose why with within without would wouldn yes yet you your yours
        yourself yourselves",
    in_some: "don down may mine will won",
};

const GERMAN: Language = Language {
    everywhere: "
        aber alle allem aller alles als am an ander andere anderen anderer anderes auch auf aus bei beim bis bist
        bitte da dabei dafür daher damit danach danke dann daran darauf darf darfst das dass davon dazu daß dein deine
        deinem deinen deiner deines dem denn der des dessen dich diese diesem diesen dieser dieses doch du durch
        dürfen eben ein eine einem einen einer eines einige einmal er es etwas euch euer eure eurem euren eurer für
        gegen gewesen gib gibt gibts hab habe haben habt hallo hast hatte hatten hattest hätte hätten ich ihm ihn
        ihnen ihr ihre ihrem ihren ihrer im immer in ins irgend ist ja jede jedem jeden jeder jedes jene jener jenes
        jetzt kann kannst kein keine keinem keinen keiner konnte konnten können könnt könnte könnten mein meine meinem
        meinen meiner meines mich mir muss musst musste mussten muß möchte möchten möchtest müssen nach nein nicht
        nichts nie noch nur ob obwohl oder ohne sagen sehr sei seid sein seine seinem seinen seiner seines seit sich
        sie sind so solche sollen sollst sollt sollte sollten sondern sonst sowie um und uns unser unsere unserem
        unseren unserer unter viel viele vielen vom von vor wann waren warst warum was weil weiter weißt welche
        welchem welchen welcher welches wem wen wenig wenn wer werde werden weshalb wessen wie wieder wieso wir wird
        wirst wo woher wohin worden wurde wurden würde würden würdest zu zum zur zwar zwischen über",
    in_some: "allen bin den die dies dir dort halt hat hier mag mal man mit nun sag sage soll war wart will",
};

const FRENCH: Language = Language {
    everywhere: "
        afin ainsi alors après as assez au aucun aucune aujourd aurait aussi autre autres avaient avais avait avant
        avec avez avoir avons ayant beaucoup bien bonjour ceci cela celle celles celui ces cet cette ceux chaque chez
        comme contre d dans de depuis des dois doit doivent donc du déjà elles en entre es est et eux fait faut hui
        ici il ils j jamais je jusqu l la laquelle le lequel les lesquels leur leurs lors lui là m mais malgré me
        merci mes moi moins n ne ni non nos notre nous on ou oui où parce pas peu peut peuvent peux plait plaît
        pourquoi pouvez presque puis puisque qu quand que quel quelle quelles quelqu quelque quelques quels qui quoi
        rien s sa salut sans se sera seraient serait seront ses si soit sommes sont sous suis sur t ta te tes toi
        toujours tous tout toute toutes trop très tu un une vers voici voilà vos votre vous y à ça étaient étais était
        étant été êtes être",
    in_some: "ai aura aux c car ce combien comment dit dont elle encore eu ma mon ont par pendant plus pour son ton",
};

const SPANISH: Language = Language {
    everywhere: "
        a ahora ahí al algo alguien alguna algunas alguno algunos algún allá allí ambos antes aquel aquella aquellas
        aquello aquellos aquí así aun aunque aún cada casi como con contra cual cuales cualquier cuando cuanto cuantos
        cuál cuáles cuándo cuánto cuántos cómo de debe deben debo del desde dime donde durante dónde e el ellas ello
        ellos en entonces entre eran eres es esa esas ese eso esos esta estaba estaban estamos estar estas este esto
        estos estoy está están estás fue fueron gracias ha haber había habían hace hacia hasta he hemos hola la las le
        les lo los mas me menos mi mientras mis mucha muchas mucho muchos muy más mía mío nada nadie ni ninguna
        ninguno no nos nosotros nuestra nuestras nuestro nuestros nunca o otra otras otro otros para pero poco por
        porque porqué pueda puede pueden puedes puedo pues que quien quienes quiero quién quiénes qué se según ser
        sera será si sido siempre sobre somos soy su sus suya suyo sí sólo también tampoco tanto te tengo ti tiene
        tienen tienes toda todas todavía todos tu tus tuya tuyo tú u un una unas unos usted ustedes vosotros vuestra
        vuestro y ya yo él",
    in_some: "ante ella era favor han hay os sea sin solo son tal tan todo tras uno van",
};

const ITALIAN: Language = Language {
    everywhere: "
        abbia abbiamo agli al alcuni alla alle allo allora altra altre altri altro anche ancora avere avete aveva
        avevano avrebbe che ciao cioè ciò così cui da dagli dai dal dalla dalle dallo degli dei del della delle dello
        deve devi devo di dunque e erano essere fino già gli grazie ha hai hanno ho i il in infatti invece io la le lo
        loro là lì ma me mentre mi miei mio molta molte molti molto ne negli nei nel nella nelle nello nessun nessuna
        nessuno niente noi non nostra nostre nostri nostro nulla o ogni ognuno oppure perche perchè perché però piu
        più poco possiamo posso possono prego puo puoi può qua qual qualche qualcosa qualcuno quale quali quando
        quanta quante quanti quanto quasi quel quella quelle quelli quello questa queste questi questo qui se sempre
        senza si siamo siano siete sono sta stanno stata stati stato stesso su sua sugli sui sul sulla sulle sullo suo
        suoi sì tanto te ti tra tu tua tuo tuoi tutta tutte tutti tutto un una uno verso voi vostra vostre vostri
        vostro è",
    in_some: "ai c chi ci come con cosa dove ed era fa fra lei li mai mia mie per poi prima sei sia state sue tue vi",
};

const PORTUGUESE: Language = Language {
    everywhere: "
        a ainda algo algum alguma algumas alguns alguém além antes ao aos apenas aquela aquelas aquele aqueles aqui
        aquilo as assim até cada como contra contudo da daquele das de dela delas dele deles depois desde dessa desse
        desta deste do e ela elas ele eles em enquanto entao entre então eram essa essas esse esses esta estas estava
        estavam este estes estou está estão foi foram havia há isso isto já lhe lhes lá mais mas me menos mesma mesmo
        meu meus minha minhas muita muitas muito muitos na nada nao nem nenhum nenhuma nesta neste ninguém no nos
        nossa nossas nosso nossos numa nunca não nós o obrigada obrigado oi olá onde ou outra outras outro outros para
        pela pelas pelo pelos pois por porque porquê porém posso pouco pra quais qual qualquer quando quanto quantos
        que quem quê se seja sem sempre ser será seu seus sido sobre somos sou sua suas são só tambem também tem tenho
        ter teu teus teve ti tinha toda todas todos tu tua tuas tudo tão têm um uma umas uns vai você vocês vos à às é
        és",
    in_some: "ali com dos era eu logo nas num os pode podem sim todo",
};

const DUTCH: Language = Language {
    everywhere: "
        aan al alle alles als altijd andere behalve bij daar daarom dat de deze dit doch doet dus een eens en er
        ergens geen graag had hadden hallo heb hebben hebt heeft het hij hun iemand iets ik in is ja je jij jou jouw
        jullie kan kon konden kun kunnen kunt maar meer mij mijn misschien moest moet moeten mogen na naar nee niemand
        niet niets nog nooit nu of om omdat onder ons onze ook op sinds te tegen toch toen tussen uit uw vaak veel
        voor waar waarom wanneer waren was wat we weer weinig wel welk welke werd werden wie wij worden wordt zal ze
        zeer zich zij zijn zo zonder zou zouden zullen",
    in_some: "ben bent dan dank die door haar hem hier hoe mag me men met over tot u van wil wilt",
};

const RUSSIAN: Language = Language {
    everywhere: "
        а без более бы был была были было быть в вам вас ваш ваша ваше ваши ведь во вот все всегда всего всем всех всё
        вы где да даже для до другая другие другой его ее ей ему если есть еще ещё её ж же за затем зачем здесь и из
        или им ими их к как какая какие какое какой какую когда кого кому конечно которая которого которое которой
        которую которые который кто куда ли либо между меня мне много мной мое моего моей может можно мои мой мою моя
        моё мы на над надо нам нас наш наша наше наши не него нее ней нет неё ни нибудь ним них ничего но ну о об один
        одна одно он она они оно от очень перед по под пожалуйста после потом потому почему почти при привет про раз с
        сам сама само свой свою своя себе себя сейчас скажи сколько со спасибо так такая такие такое такой там твое
        твои твой твоя твоё те тебе тебя тем теперь тех то тобой тогда того тоже той только том тот тут ты у уж уже
        хоть хотя чего чей чем через что чтоб чтобы чуть чья эта эти это этого этой этом этот эту я",
    in_some: "",
};

const KOREAN: Language = Language {
    everywhere: "
        가 것 과 그 그것 그녀 그는 그러나 그리고 나 나는 내 내가 너 너는 네 네가 누가 누구 는 도 들 등 또는 로 를 무엇 무엇을 뭐 뭐야 및 수 아니 어디 어떤 어떻게 언제 에 에서 와 왜 우리
        으로 은 을 의 이 이것 있는 있다 저 저는 제 제가 좀 하지만",
    in_some: "",
};

/// Pairs of Japanese or Chinese characters without a meaning of their own.
const UNSPACED_PAIRS: &str = "
    です ます まし した して ない なん なに なの から まで より ので のに のは のが のを には では でも とは との への にも こと もの ため よう そう この その あの どの これ それ
    あれ どれ ここ そこ あそ どこ だれ いつ どう する すか すね され れる られ ある あり いる いま てい ただ だけ でし でき きる って った たい たの んで んだ だと ださ くだ さい
    さん ちゃ わた たし あな なた れは れが れを 何で は何 何を 何が 何か 誰が は誰 誰で は私 私の 私は 私が 如果 虽然 然后";

/// Characters without a meaning of their own, if a word has no others.
const CHINESE: &str = "的了是在我你您他她它们这那哪谁什么怎样吗呢吧啊不没有和与就也都很还又再只会要能可以及或但而且因为所到从给对把被让着过个些之其此请";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_words_of_many_languages_tell_nothing() {
        for question in [
            "who is the one?",
            "What do you know about it?",
            "WHAT'S IN THERE, and why don't we tell them?",
            "wer ist das, und was gibt es hier?",
            "Wo war die denn?",
            "qui est-ce ? où sont-ils ? qu'est-ce que c'est ?",
            "¿quién es este y dónde está?",
            "¿Qué hay en el otro?",
            "chi è questo, e dove sono gli altri?",
            "quem é você e onde está o outro?",
            "wie is dat en waar zijn ze van?",
            "кто это, и что у него есть?",
            "这是什么?",
            "他们是谁",
            "これは何ですか",
            "이것 뭐야",
            "",
            "?!",
        ] {
            assert_eq!(telling(question), [] as [&str; 0], "{question}");
        }
    }

    #[test]
    fn names_and_things_stay() {
        let check = |question: &str, expected: &[&str]| {
            assert_eq!(telling(question), expected, "{question}");
        };
        check("Who is Élodie?", &["élodie"]);
        check("where are the bees in the garden", &["bees", "garden"]);
        check(
            "Wo ist der Schlüssel für die Garage?",
            &["schlüssel", "garage"],
        );
        check("Où est la clé de la maison ?", &["clé", "maison"]);
        check("¿Dónde está la llave del coche?", &["llave", "coche"]);
        check(
            "Dov'è la chiave della macchina?",
            &["dov", "chiave", "macchina"],
        );
        check("Onde está a chave do carro?", &["chave", "carro"]);
        check("Waar is de sleutel van de auto?", &["sleutel", "auto"]);
        check("Где лежит ключ от машины?", &["лежит", "ключ", "машины"]);
        check("猫在哪里", &["猫在", "哪里"]);
        check("42", &["42"]);
    }

    /// `car` is French for because, `die` a German article, `door` Dutch for through.
    #[test]
    fn a_little_word_of_another_language_is_a_word() {
        let check = |question: &str, expected: &[&str]| {
            assert_eq!(telling(question), expected, "{question}");
        };
        check("car", &["car"]);
        check("Is the car in the garage?", &["car", "garage"]);
        check("is the door open", &["door", "open"]);
        check("what is the AI for", &["ai"]);
        check("did they die in the war?", &["die", "war"]);
        check("who has the red hat of my son", &["red", "hat", "son"]);
        check("Ist die Katze da?", &["katze"]);
        check("Il est parti car il pleut", &["parti", "pleut"]);
        // A name is known by its capital.
        check("When is Will's birthday?", &["will", "birthday"]);
        check("when will it rain?", &["rain"]);
        check("May", &["may"]);
        check("the NAS is in state C", &["nas", "state", "c"]);
        check(
            "ask Ed and Dan about the logo of MIT",
            &["ask", "ed", "dan", "logo", "mit"],
        );
    }
}
