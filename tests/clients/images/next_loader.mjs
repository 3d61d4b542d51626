export default function loader({ src, width, quality }) {
  return `${process.env.NEXT_PUBLIC_CMS}${src}?width=${width}&quality=${quality ?? 75}&format=auto`;
}
